//===- compiled_program.cpp - A program in the runtime --------------------===//

#include "config/config.h"
#include "memory/buffer.h"
#include "programs/host_calls.h"
#include "programs/interpreted_program.h"
#include "programs/worker_state.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <stdexcept>

using namespace torch_ltc;

void torch_ltc::throwIfFailed(LtcStatus status) {
  if (!status)
    return;
  std::string message = ltcStatusMessage(status);
  ltcStatusDestroy(status);
  throw std::runtime_error(message);
}

LtcDType torch_ltc::toLtcDType(c10::ScalarType type) {
  switch (type) {
  case c10::ScalarType::Bool:
    return LTC_DTYPE_BOOL;
  case c10::ScalarType::Byte:
    return LTC_DTYPE_UINT8;
  case c10::ScalarType::Char:
    return LTC_DTYPE_INT8;
  case c10::ScalarType::Short:
    return LTC_DTYPE_INT16;
  case c10::ScalarType::Int:
    return LTC_DTYPE_INT32;
  case c10::ScalarType::Long:
    return LTC_DTYPE_INT64;
  case c10::ScalarType::Half:
    return LTC_DTYPE_FLOAT16;
  case c10::ScalarType::BFloat16:
    return LTC_DTYPE_BFLOAT16;
  case c10::ScalarType::Float:
    return LTC_DTYPE_FLOAT32;
  case c10::ScalarType::Double:
    return LTC_DTYPE_FLOAT64;
  case c10::ScalarType::ComplexFloat:
    return LTC_DTYPE_COMPLEX64;
  case c10::ScalarType::ComplexDouble:
    return LTC_DTYPE_COMPLEX128;
  default:
    throw std::runtime_error(std::string("Tensors of dtype ") +
                             c10::toString(type) + " can't be compiled.");
  }
}

namespace {

/// Returns the first known line of a command's ops; "" if there is none.
/// `locations`: the lines of the nodes in this run, or empty.
std::string lineOf(const LtcCommandInfo &command, const GraphSnapshot &graph,
                   c10::ArrayRef<LocationId> locations = {}) {
  for (size_t i = 0; i < command.num_nodes; ++i) {
    size_t node = command.nodes[i] - 1; // node ids start at 1
    if (node >= graph.nodes.size())
      continue;
    if (LocationId location =
            locations.empty() ? graph.nodes[node].location : locations[node])
      return shortText(location);
  }
  return "";
}

/// The modules of a command's ops: "body.0+body.1".
std::string modulesOf(const LtcCommandInfo &command,
                      const GraphSnapshot &graph) {
  constexpr size_t kMaxPaths = 3;
  std::vector<ModulePathId> found;
  for (size_t i = 0; i < command.num_nodes; ++i) {
    size_t node = command.nodes[i] - 1;
    ModulePathId path =
        node < graph.nodes.size() ? graph.nodes[node].modulePath : 0;
    if (path && std::find(found.begin(), found.end(), path) == found.end())
      found.push_back(path);
  }
  std::string text;
  for (size_t i = 0; i < std::min(found.size(), kMaxPaths); ++i)
    text += (i ? "+" : "") + modulePathText(found[i]);
  return found.size() > kMaxPaths ? text + "+..." : text;
}

/// Reports each command to torch.profiler: "torch_ltc::aten.tanh f32[4,5]
/// (body.1)".
class CommandSpans {
public:
  CommandSpans(LtcExecutable executable, const GraphSnapshot &graph,
               LtcRunArguments &arguments)
      : executable(executable), graph(graph) {
    arguments.command_event = event;
    arguments.command_event_user_data = this;
  }

private:
  static void event(size_t index, int begins, void *self) {
    auto &spans = *static_cast<CommandSpans *>(self);
    spans.span.reset();
    if (!begins)
      return;
    spans.span.emplace(at::RecordScope::FUNCTION);
    if (!spans.span->isActive())
      return;
    LtcCommandInfo info = ltcExecutableCommand(spans.executable, index);
    std::string text = std::string("torch_ltc::") + info.name;
    if (*info.result_types)
      text += std::string(" ") + info.result_types;
    std::string modules = modulesOf(info, spans.graph);
    if (!modules.empty())
      text += " (" + modules + ")";
    spans.span->before(std::move(text));
  }

  LtcExecutable executable;
  const GraphSnapshot &graph;
  std::optional<at::RecordFunction> span;
};

/// Gives a run access to the lines on which this step's ops were traced.
class CommandLines {
public:
  CommandLines(LtcExecutable executable, const GraphSnapshot &graph,
               c10::ArrayRef<LocationId> locations, LtcRunArguments &arguments)
      : executable(executable), graph(graph), locations(locations) {
    arguments.command_location = find;
    arguments.command_location_user_data = this;
  }

private:
  static const char *find(size_t index, void *self) {
    auto &lines = *static_cast<CommandLines *>(self);
    lines.line = lineOf(ltcExecutableCommand(lines.executable, index),
                        lines.graph, lines.locations);
    return lines.line.c_str();
  }

  LtcExecutable executable;
  const GraphSnapshot &graph;
  c10::ArrayRef<LocationId> locations;
  std::string line;
};

bool fits(const LtcTensorInfo &info, const torch::lazy::Shape &shape) {
  return info.dtype == toLtcDType(shape.scalar_type()) &&
         c10::ArrayRef<int64_t>(info.sizes, info.rank) == shape.sizes();
}

/// Throws the error that eager's kernels raise for the values of a run, if any,
/// with the runtime's message appended.
void raiseAsEager(const GraphSnapshotPtr &graph,
                  c10::ArrayRef<void *> parameters,
                  c10::ArrayRef<DynamicScalar> scalars,
                  const RunConditions &conditions, const std::string &cause) {
  try {
    WorkerStateGuard state;
    InterpretedProgram(graph).evaluate(parameters, scalars, conditions);
  } catch (const RunError &error) {
    // A collective doesn't run a second time, so only `cause` describes the
    // error.
    if (error.isOfCollective)
      return;
    throw RunError(std::string(error.what()) + ". " + cause,
                   /*parametersIntact=*/true, error.kind);
  }
}

} // namespace

static LtcExecutable load(const char *bytes, size_t size) {
  LtcExecutable executable = nullptr;
  throwIfFailed(ltcExecutableLoad(bytes, size, &executable));
  return executable;
}

CompiledProgram::CompiledProgram(GraphSnapshotPtr snapshot, const char *bytes,
                                 size_t size)
    : CompiledProgram(std::move(snapshot), load(bytes, size)) {}

CompiledProgram::CompiledProgram(GraphSnapshotPtr snapshot,
                                 LtcExecutable executable)
    : executable(executable), graph(std::move(snapshot)) {
  try {
    checkSignature();
  } catch (...) {
    ltcExecutableDestroy(executable);
    throw;
  }
  name = graph->name;
  numOps = graph->numOps;
  noteCollectives(*graph, *this);
  for (size_t i = 0; i < graph->results.size(); ++i) {
    LtcOutputInfo info = ltcExecutableOutput(executable, i);
    OutputPlan plan;
    plan.parameter = info.parameter;
    if (info.updated_parameter >= 0)
      plan.updatedParameter = size_t(info.updated_parameter);
    if (info.place == LTC_OUTPUT_DONATED)
      plan.place = OutputPlace::Donated;
    else if (info.place == LTC_OUTPUT_FORWARDED)
      plan.place = OutputPlace::Forwarded;
    numDonated += plan.place == OutputPlace::Donated;
    outputs.push_back(plan);
  }
}

CompiledProgram::~CompiledProgram() { ltcExecutableDestroy(executable); }

void CompiledProgram::checkSignature() const {
  bool matches =
      ltcExecutableNumParameters(executable) == graph->parameters.size() &&
      ltcExecutableNumScalars(executable) == graph->scalarIsFloat.size() &&
      ltcExecutableNumOutputs(executable) == graph->results.size();
  for (size_t i = 0; matches && i < graph->parameters.size(); ++i)
    matches =
        fits(ltcExecutableParameter(executable, i), graph->parameters[i].shape);
  for (size_t i = 0; matches && i < graph->results.size(); ++i) {
    LtcOutputInfo info = ltcExecutableOutput(executable, i);
    matches = fits(info.type, graph->shape(graph->results[i]));
    if (info.place == LTC_OUTPUT_DONATED)
      matches = matches && graph->parameters[info.parameter].donatable;
  }
  if (!matches)
    throw std::runtime_error("The executable's parameters and results aren't "
                             "those of the traced program.");
}

void CompiledProgram::run(c10::ArrayRef<void *> parameters,
                          c10::ArrayRef<DynamicScalar> scalars,
                          c10::ArrayRef<void *> outputPointers,
                          const RunConditions &conditions) {
  std::vector<LtcScalar> values(scalars.size());
  for (size_t i = 0; i < scalars.size(); ++i)
    if (scalars[i].isFloat)
      values[i].as_float = scalars[i].asFloat;
    else
      values[i].as_int = scalars[i].asInt;
  std::vector<int64_t> times;
  if (config().profile_commands.get())
    times.resize(numCommands());
  LtcRunArguments arguments{};
  arguments.parameters = parameters.data();
  arguments.scalars = values.data();
  arguments.outputs = outputPointers.data();
  arguments.num_threads = conditions.threads;
  arguments.caller_clock = conditions.caller ? &*conditions.caller : nullptr;
  arguments.command_nanoseconds = times.empty() ? nullptr : times.data();
  if (!conditions.parameterContents.empty())
    arguments.parameter_contents = conditions.parameterContents.data();
  int parametersIntact = 0;
  arguments.parameters_intact = &parametersIntact;
  // Before the runtime maps a larger arena, releases the buffers that the
  // program's op-by-op runs have left in the cache.
  if (size_t(arenaBytes()) > ltcArenaPoolBytes())
    memoryPool().release();
  CommandLines lines(executable, *graph, conditions.locations, arguments);
  std::optional<CommandSpans> spans;
  if (at::hasCallbacks())
    spans.emplace(executable, *graph, arguments);
  try {
    throwIfFailed(ltcExecutableRun(executable, &arguments));
  } catch (const std::runtime_error &error) {
    releaseAfterFailure();
    if (parametersIntact)
      raiseAsEager(graph, parameters, scalars, conditions, error.what());
    throw RunError(error.what(), parametersIntact != 0);
  }
  if (times.empty())
    return;
  std::lock_guard<std::mutex> lock(profileMutex);
  ++profiledCalls;
  nanoseconds.resize(times.size());
  for (size_t i = 0; i < times.size(); ++i)
    nanoseconds[i] += times[i];
}

std::vector<ProgramCommand> CompiledProgram::commands() const {
  std::lock_guard<std::mutex> lock(profileMutex);
  std::vector<ProgramCommand> result;
  for (size_t i = 0; i < numCommands(); ++i) {
    ProgramCommand command;
    LtcCommandInfo info = ltcExecutableCommand(executable, i);
    command.name = info.name;
    command.location = lineOf(info, *graph);
    command.modulePath = modulesOf(info, *graph);
    command.resultTypes = info.result_types;
    command.calls = profiledCalls;
    if (i < nanoseconds.size())
      command.seconds = double(nanoseconds[i]) * 1e-9;
    result.push_back(std::move(command));
  }
  return result;
}

int64_t CompiledProgram::arenaBytes() const {
  return int64_t(ltcExecutableArenaBytes(executable));
}
size_t CompiledProgram::numKernels() const {
  return ltcExecutableNumKernels(executable);
}
size_t CompiledProgram::numCommands() const {
  return ltcExecutableNumCommands(executable);
}
