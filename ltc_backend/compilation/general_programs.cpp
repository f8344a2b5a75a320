//===- general_programs.cpp - Programs for all sizes ----------------------===//

#include "compilation/general_programs.h"

#include "compilation/background_compiler.h"
#include "compilation/compiler_library.h"
#include "compilation/disk_cache.h"
#include "compilation/interruptible_work.h"
#include "compilation/program_builder.h"
#include "config/config.h"
#include "config/log.h"
#include "events/metrics.h"

#include <ATen/Parallel.h>

#include <deque>
#include <stdexcept>

using namespace torch_ltc;

namespace {

/// A general executable, or why there is none.
struct GeneralProgram {
  Hash128 hash;
  std::mutex compiling;
  std::atomic<bool> isDone{false};
  LtcExecutable executable = nullptr;
  std::string failure;

  explicit GeneralProgram(const Hash128 &hash) : hash(hash) {}
  GeneralProgram(const GeneralProgram &) = delete;
  ~GeneralProgram() {
    if (executable)
      ltcExecutableDestroy(executable);
  }
};
using GeneralProgramPtr = std::shared_ptr<GeneralProgram>;

/// The most recently used last.
class GeneralPrograms {
public:
  static GeneralPrograms &get() {
    static auto *programs = new GeneralPrograms;
    return *programs;
  }

  GeneralProgramPtr find(const Hash128 &hash, bool &isNew) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found =
        std::ranges::find(programs, hash, [](const GeneralProgramPtr &program) {
          return program->hash;
        });
    isNew = found == programs.end();
    GeneralProgramPtr program =
        isNew ? std::make_shared<GeneralProgram>(hash) : *found;
    if (!isNew)
      programs.erase(found);
    programs.push_back(program);
    if (programs.size() > mostPrograms)
      programs.pop_front();
    return program;
  }

  void clear() {
    std::lock_guard<std::mutex> lock(mutex);
    programs.clear();
  }

private:
  static constexpr size_t mostPrograms = 64;
  std::mutex mutex;
  std::deque<GeneralProgramPtr> programs;
};

/// The stand-ins are the compiler's: it recognises numbers by them.
SymbolValues standIns(const CompilerLibrary &library, size_t symbols,
                      size_t sample) {
  SymbolValues values;
  for (size_t i = 0; i < symbols; ++i)
    values.push_back(library.ltcSizeStandIn(i, sample));
  return values;
}

/// The serialized executable.
std::string compile(const GeneralGraph &graph, const Hash128 &hash) {
  const CompilerLibrary &library = compilerLibrary();
  size_t symbols = graph.symbols().size();
  auto programs = std::make_shared<std::deque<ProgramHandle>>();
  std::vector<LtcProgram> samples;
  for (size_t k = 0; k < LTC_GENERAL_SAMPLES; ++k) {
    GraphSnapshot sample =
        graph.instantiate(standIns(library, symbols, k), hash.text());
    programs->emplace_back(library, entryName(sample));
    buildProgram(library, programs->back().get(), sample);
    samples.push_back(programs->back().get());
  }
  LtcCompileOptions options{};
  options.verify = config().verify.get();
  options.threads = at::get_num_threads();
  struct Result {
    LtcBytes bytes{};
    LtcCompileStatistics statistics{};
    LtcStatus status = nullptr;
    ~Result() { ltcBytesDestroy(bytes); }
  };
  auto result = std::make_shared<Result>();
  runInterruptibly([&library, programs, samples, symbols, options, result] {
    result->status = library.ltcProgramsCompileGeneral(
        samples.data(), symbols, &options, &result->bytes, &result->statistics);
  });
  throwIfFailed(result->status);
  count(Counter::compilations);
  count(Counter::kernels_compiled,
        int64_t(result->statistics.kernels_compiled));
  return {result->bytes.data, result->bytes.size};
}

/// Once for each; later callers wait for the first.
void compileOnce(GeneralProgram &program, const GeneralGraph &graph) {
  std::lock_guard<std::mutex> lock(program.compiling);
  if (program.isDone)
    return;
  try {
    std::optional<std::string> bytes;
    if (config().cache.get())
      bytes = lookupProgram(program.hash);
    if (!bytes) {
      Stopwatch stopwatch;
      bytes = compile(graph, program.hash);
      recordTime(Timer::compile, stopwatch.seconds());
      if (config().cache.get())
        storeProgram(program.hash, bytes->data(), bytes->size());
    }
    throwIfFailed(
        ltcExecutableLoad(bytes->data(), bytes->size(), &program.executable));
  } catch (const std::exception &error) {
    if (areCompilationsCancelled())
      return;
    program.failure = error.what();
    log(LogLevel::Info,
        "A program is compiled for each of its sizes: " + program.failure);
  }
  program.isDone = true;
}

Hash128 generalHash(const GeneralGraph &graph) {
  HashState state(12);
  state.add(graph.hash());
  state.add(programOptionsHash());
  return state.finish();
}

} // namespace

Sighting torch_ltc::noteSizes(const GraphSnapshotPtr &graph,
                              CompileEvent &event) {
  if (config().varying_sizes.get() == "off")
    return {};
  Sighting sighting = SkeletonMemory::get().note(graph);
  if (!sighting.reason.empty())
    event.reason += "; " + sighting.reason;
  if (sighting.general)
    for (size_t i = 0; i < sighting.general->symbols().size(); ++i)
      event.sizes.push_back(sighting.general->symbolText(i));
  return sighting;
}

ProgramPtr torch_ltc::makeFromGeneral(const Sighting &sighting,
                                      const GraphSnapshotPtr &graph, bool wait,
                                      CompileEvent &event) {
  if (!sighting.general || config().varying_sizes.get() != "auto")
    return nullptr;
  bool isNew = false;
  GeneralProgramPtr program =
      GeneralPrograms::get().find(generalHash(*sighting.general), isNew);
  if (wait)
    compileOnce(*program, *sighting.general);
  else if (isNew)
    compileInBackground([program, general = sighting.general] {
      compileOnce(*program, *general);
    });
  if (!program->isDone)
    return nullptr;
  if (!program->executable) {
    event.reason += "; no general form: " + program->failure;
    return nullptr;
  }
  LtcExecutable bound = nullptr;
  try {
    throwIfFailed(ltcExecutableBind(program->executable, sighting.values.data(),
                                    sighting.values.size(), &bound));
  } catch (const std::runtime_error &error) {
    event.reason += std::string("; ") + error.what();
    return nullptr;
  }
  return std::make_shared<CompiledProgram>(graph, bound);
}

void torch_ltc::clearGeneralPrograms() { GeneralPrograms::get().clear(); }
