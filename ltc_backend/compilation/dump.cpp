//===- dump.cpp - A compiled program as files -----------------------------===//

#include "compilation/dump.h"

#include "compilation/program_builder.h"
#include "config/log.h"
#include "memory/host_data.h"

#include <c10/util/StringUtil.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

using namespace torch_ltc;
namespace fs = std::filesystem;

namespace {

void writeFile(const fs::path &path, const std::string &text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream)
    throw std::runtime_error("can't write " + path.string());
}

const char *fileOf(const std::string &stage) {
#define LTC_STAGE(name, file, text)                                            \
  if (stage == name)                                                           \
    return file;
#include "torch_ltc-c/stages.def"
#undef LTC_STAGE
  throw std::runtime_error("a dump has no file for stage " + stage);
}

std::string tensorTable(const GraphSnapshot &graph, const Program &program) {
  std::ostringstream stream;
  stream << "role    index  shape  bytes  donated  name\n";
  for (const TensorDescription &tensor : describeTensors(graph, program))
    stream << (tensor.isInput ? "input   " : "output  ") << tensor.index << "  "
           << tensor.shape.to_string() << "  " << byteSize(tensor.shape) << "  "
           << (tensor.isDonated ? "yes" : "no") << "  " << tensor.name << "\n";
  return stream.str();
}

std::string summary(const CompileEvent &event) {
  std::ostringstream stream;
  stream << "program          " << event.program << "\n"
         << "step             " << event.step << "\n"
         << "line             " << event.location << "\n"
         << "compiled because " << reasonOf(event) << "\n"
         << "numbers that vary " << c10::Join(", ", event.varying) << "\n"
         << "ops              " << event.ops << "\n"
         << "kernels          " << event.kernels << " ("
         << event.kernelsCompiled << " compiled)\n"
         << "commands         " << event.commands << "\n"
         << "arena bytes      " << event.arenaBytes << "\n"
         << "seconds          torch " << event.torchSeconds << ", linalg "
         << event.linalgSeconds << ", kernels " << event.kernelsSeconds
         << ", llvm " << event.llvmSeconds << ", all " << event.seconds << "\n";
  return stream.str();
}

// The summary is written last: if it exists, the dump is complete.
bool isComplete(const fs::path &path) {
  std::error_code ignored;
  return fs::exists(path / "summary.txt", ignored);
}

struct KnownDumps {
  std::mutex mutex;
  // Maps the folder and the program of each dump to its path.
  std::unordered_map<std::string, std::string> pathOf;
  std::unordered_set<std::string> failed;
};

KnownDumps &knownDumps() {
  static auto *instance = new KnownDumps;
  return *instance;
}

void rememberDump(const std::string &key, const fs::path &path) {
  std::lock_guard<std::mutex> lock(knownDumps().mutex);
  knownDumps().pathOf.insert_or_assign(key, path.string());
}

} // namespace

std::vector<TensorDescription>
torch_ltc::describeTensors(const GraphSnapshot &graph, const Program &program) {
  std::vector<TensorDescription> result;
  std::vector<bool> isDonated(graph.parameters.size());
  for (const OutputPlan &plan : program.outputs)
    if (plan.place == OutputPlace::Donated)
      isDonated[plan.parameter] = true;
  for (size_t i = 0; i < graph.parameters.size(); ++i)
    result.push_back({true, i, graph.parameters[i].name,
                      graph.parameters[i].shape, bool(isDonated[i])});
  for (size_t i = 0; i < graph.results.size(); ++i) {
    const OutputPlan &plan = program.outputs[i];
    bool donated = plan.place == OutputPlace::Donated;
    std::string name = plan.place == OutputPlace::Fresh
                           ? ""
                           : graph.parameters[plan.parameter].name;
    result.push_back({false, i, name, graph.shape(graph.results[i]), donated});
  }
  return result;
}

std::string torch_ltc::findDump(const std::string &folder,
                                const std::string &name) {
  std::string key = folder + "\n" + name;
  std::error_code ignored;
  {
    std::lock_guard<std::mutex> lock(knownDumps().mutex);
    auto known = knownDumps().pathOf.find(key);
    if (known != knownDumps().pathOf.end() && isComplete(known->second))
      return known->second;
  }
  std::string ending = "_" + name.substr(0, 12);
  for (const fs::directory_entry &entry :
       fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string().ends_with(ending) &&
        isComplete(entry.path())) {
      rememberDump(key, entry.path());
      return entry.path().string();
    }
  return "";
}

bool torch_ltc::hasDumpFailed(const std::string &folder,
                              const std::string &name) {
  std::lock_guard<std::mutex> lock(knownDumps().mutex);
  return knownDumps().failed.contains(folder + "\n" + name);
}

std::string torch_ltc::dumpProgram(const std::string &folder,
                                   const GraphSnapshot &graph,
                                   const Program &program,
                                   const StageTexts &texts,
                                   const CompileEvent &event) {
  fs::path path = fs::path(folder) / ("step" + std::to_string(event.step) +
                                      "_" + graph.name.substr(0, 12));
  try {
    fs::create_directories(path);
    writeFile(path / "ir.txt", graphText(graph));
    writeFile(path / "graph.dot", graphDot(graph));
    for (const auto &[stage, text] : texts)
      writeFile(path / fileOf(stage), text);
    writeFile(path / "tensors.txt", tensorTable(graph, program));
    writeFile(path / "summary.txt", summary(event));
    rememberDump(folder + "\n" + graph.name, path);
    return path.string();
  } catch (const std::exception &error) {
    log(LogLevel::Warning, "The program of step " + std::to_string(event.step) +
                               " couldn't be dumped: " + error.what() + ".");
    std::lock_guard<std::mutex> lock(knownDumps().mutex);
    knownDumps().failed.insert(folder + "\n" + graph.name);
    return "";
  }
}

void torch_ltc::saveInputs(const std::string &folder, const Graph &graph) {
  fs::path path = fs::path(folder) / "inputs.pt";
  std::error_code ignored;
  if (fs::exists(path, ignored))
    return;
  // A list of `Any`, because a typed list would be pickled as a TorchScript
  // list.
  c10::impl::GenericList inputs(c10::AnyType::get()),
      scalars(c10::AnyType::get());
  for (const HostDataPtr &parameter : graph.parameters)
    inputs.push_back(parameter->copyToTensor());
  for (const DynamicScalar &scalar : graph.scalars)
    scalars.push_back(scalar.isFloat ? c10::IValue(scalar.asFloat)
                                     : c10::IValue(scalar.asInt));
  c10::impl::GenericDict values(c10::StringType::get(), c10::AnyType::get());
  values.insert("inputs", std::move(inputs));
  values.insert("scalars", std::move(scalars));
  std::vector<char> bytes = torch::jit::pickle_save(values);
  try {
    writeFile(path, std::string(bytes.begin(), bytes.end()));
  } catch (const std::exception &error) {
    log(LogLevel::Warning, std::string("Inputs couldn't be dumped: ") +
                               error.what() + " (option dump_inputs).");
  }
}

void torch_ltc::saveGraph(const std::string &file, const std::string &format,
                          const GraphSnapshot &graph) {
  std::ofstream stream(file, std::ios::app);
  stream << "[program " << graph.name << "]\n"
         << (format == "dot"       ? graphDot(graph)
             : format == "backend" ? stageText(graph, "torch")
                                   : graphText(graph))
         << "\n";
  stream.close();
  if (!stream)
    log(LogLevel::Warning, "The graph couldn't be appended to '" + file +
                               "' (option "
                               "save_tensors_file).");
}
