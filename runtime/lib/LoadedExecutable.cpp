//===- LoadedExecutable.cpp - An executable that can be run ---------------===//

#include "LoadedExecutable.h"

#include "Diagnostics.h"
#include "ExecutableBytes.h"
#include "ExecutableVerifier.h"
#include "Parallel.h"
#include "TargetCpu.h"

#include "llvm/ADT/ScopeExit.h"

#include <google/protobuf/stubs/logging.h>

#include <chrono>
#include <climits>
#include <cstring>

using namespace torch_ltc::runtime;

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<LoadedExecutable>>
LoadedExecutable::load(const char *data, size_t size) {
  std::unique_ptr<LoadedExecutable> result(
      new LoadedExecutable(/*isBound=*/false));
  Executable &message = result->message;
  // protobuf counts bytes in int.
  if (size > size_t(INT_MAX))
    return failure("A compiled program of {0} MB is too large: its constants "
                   "must stay below 2 GB. Pass them as parameters.",
                   size >> 20);
  // protobuf logs strings that aren't valid UTF-8, such as a corrupt message's
  // name.
  google::protobuf::LogSilencer silencer;
  if (!message.ParseFromArray(data, int(size)))
    return failure("A compiled program of {0} bytes is damaged: it isn't an "
                   "executable message. Delete the program cache and compile "
                   "it again.",
                   size);
  if (message.format_version() == FORMAT_VERSION &&
      !hasRightChecksum({data, size}))
    return failure("The compiled program '{0}' is damaged: its checksum is "
                   "wrong. Delete the program cache and compile it again.",
                   message.name());
  if (llvm::Error error = verifyExecutable(message))
    return error;
  if (llvm::Error error = checkHostRuns(message.cpu()))
    return error;

  auto kernels = KernelLibrary::link(message.kernels());
  if (!kernels)
    return kernels.takeError();
  result->kernels = std::move(*kernels);
  // Swaps instead of clearing, which wouldn't free the memory.
  for (Kernel &kernel : *message.mutable_kernels())
    std::string().swap(*kernel.mutable_object());
  if (message.has_general())
    result->form.reset(message.release_general());
  if (llvm::Error error = result->copyConstants())
    return error;
  if (llvm::Error error = result->finish())
    return error;
  return result;
}

llvm::Expected<std::unique_ptr<LoadedExecutable>>
LoadedExecutable::bind(const LtcSizes &sizes) const {
  if (!form)
    return failure("Program '{0}' can't be bound to sizes: it was compiled for "
                   "fixed sizes.",
                   message.name());
  std::unique_ptr<LoadedExecutable> result(
      new LoadedExecutable(/*isBound=*/true));
  result->message = message;
  auto numbers = bindSizes(result->message, *form, sizes);
  if (!numbers)
    return numbers.takeError();
  if (llvm::Error error = verifyBinding(result->message))
    return error;
  result->kernels = kernels;
  result->numbers = std::move(*numbers);
  result->constantMemory = constantMemory;
  result->constants = constants;
  if (llvm::Error error = result->finish())
    return error;
  return result;
}

llvm::Error LoadedExecutable::finish() {
  describeSignature();
  if (form) // never runs; its commands are verified when sizes are bound
    return llvm::Error::success();
  findChangedParameters();
  countHarmlessCommands();
  // Creates the primitives for the thread count that the first run most likely
  // uses, so that a call that oneDNN doesn't support fails here.
  auto state = prepare(omp_get_max_threads(), /*run=*/0);
  if (!state)
    return state.takeError();
  release(std::move(*state));
  return llvm::Error::success();
}

llvm::Error LoadedExecutable::copyConstants() {
  size_t bytes = 0;
  for (const std::string &constant : message.constants())
    bytes += alignedSize(constant.size());
  if (!bytes) {
    constants.assign(message.constants_size(), nullptr);
    return llvm::Error::success();
  }
  auto memory = Arena::create(bytes);
  if (!memory)
    return memory.takeError();
  constantMemory = std::move(*memory);
  char *next = constantMemory->data();
  for (const std::string &constant : message.constants()) {
    std::memcpy(next, constant.data(), constant.size());
    constants.push_back(next);
    next += alignedSize(constant.size());
  }
  google::protobuf::RepeatedPtrField<std::string>().Swap(
      message.mutable_constants());
  return llvm::Error::success();
}

static LtcTensorInfo tensorInfo(const TensorType &type, const char *name) {
  return {LtcDType(type.dtype()), size_t(type.sizes_size()),
          type.sizes().data(), name, tensorBytes(type)};
}

void LoadedExecutable::describeSignature() {
  for (const Parameter &parameter : message.parameters())
    parameters.push_back(
        tensorInfo(parameter.type(), parameter.name().c_str()));
  for (const Output &output : message.outputs()) {
    LtcOutputInfo info = {tensorInfo(output.type(), ""), LTC_OUTPUT_CALLER, 0,
                          -1};
    if (output.has_donated_parameter()) {
      info.place = LTC_OUTPUT_DONATED;
      info.parameter = output.donated_parameter();
    } else if (output.has_forwarded_parameter()) {
      info.place = LTC_OUTPUT_FORWARDED;
      info.parameter = output.forwarded_parameter();
    }
    if (output.has_updated_parameter())
      info.updated_parameter = output.updated_parameter();
    outputs.push_back(info);
  }
  for (const Command &command : message.commands())
    commandNames.push_back(displayName(command));
}

void LoadedExecutable::findChangedParameters() {
  isChanged.resize(parameters.size());
  for (const LtcOutputInfo &output : outputs)
    if (output.place == LTC_OUTPUT_DONATED)
      isChanged[output.parameter] = true;
}

/// Calls `visit` with each part of a buffer that `command` writes.
static void forEachWritten(const Executable &message, const Command &command,
                           llvm::function_ref<void(const BufferRef &)> visit) {
  switch (command.call_case()) {
  case Command::kKernel: {
    const KernelCall &call = command.kernel();
    const auto &operands = message.kernels(call.kernel()).operands();
    for (auto [operand, argument] : llvm::zip(operands, call.arguments()))
      if (operand.written())
        visit(argument);
    return;
  }
  case Command::kMatmul:
    return visit(command.matmul().c());
  case Command::kConvolution: {
    const ConvolutionCall &call = command.convolution();
    if (call.kind() == ConvolutionCall::FORWARD)
      return visit(call.output());
    if (call.kind() == ConvolutionCall::BACKWARD_INPUT)
      return visit(call.input());
    visit(call.weight());
    if (call.has_bias())
      visit(call.bias());
    return;
  }
  case Command::kAttention: {
    const AttentionCall &call = command.attention();
    if (call.backward()) {
      visit(call.grad_query());
      visit(call.grad_key());
      return visit(call.grad_value());
    }
    visit(call.output());
    return visit(call.log_sum());
  }
  case Command::kCopy:
    return visit(command.copy().destination());
  case Command::kFill:
    return visit(command.fill().destination());
  case Command::kHost:
    llvm::for_each(command.host().outputs(), visit);
    return;
  case Command::kBoundsCheck:
  case Command::CALL_NOT_SET:
    return;
  }
}

void LoadedExecutable::countHarmlessCommands() {
  auto isDonated = [&](const BufferRef &reference) {
    const Buffer &buffer = message.buffers(reference.buffer());
    if (buffer.has_output())
      return message.outputs(buffer.output()).has_donated_parameter();
    return buffer.has_parameter() && isChanged[buffer.parameter()];
  };
  auto isHarmless = [&](const Command &command) {
    bool isHarmless = true;
    forEachWritten(message, command, [&](const BufferRef &written) {
      isHarmless = isHarmless && !isDonated(written);
    });
    return isHarmless;
  };
  const auto &commands = message.commands();
  numHarmless = std::find_if_not(commands.begin(), commands.end(), isHarmless) -
                commands.begin();
}

//===----------------------------------------------------------------------===//
// Run states
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<LoadedExecutable::RunState>>
LoadedExecutable::prepare(int numThreads, int64_t run) const {
  ThreadCountScope scope(numThreads);
  auto state = std::make_unique<RunState>();
  state->numThreads = numThreads;
  Preparation preparation{numThreads, kernels.get(), numbers.tables};
  bool dependsOnRuns = false;
  // A program that has run often will presumably run as often again.
  if (isBound) {
    preparation.expectedRuns = std::max<int64_t>(run, 1);
    preparation.dependsOnRuns = &dependsOnRuns;
  }
  state->scratchBytes = 0;
  state->buffers.resize(message.buffers_size());
  bool hasShort = false, hasLong = false;
  for (int i = 0; i < message.commands_size(); ++i) {
    auto command = prepareCommand(message.commands(i), preparation);
    if (!command)
      return failure("Command {0} ('{1}') of program '{2}' can't be prepared: "
                     "{3}",
                     i, commandNames[i], message.name(),
                     llvm::toString(command.takeError()));
    state->scratchBytes =
        std::max(state->scratchBytes, (*command)->scratchBytes());
    hasShort |= (*command)->team() == Team::Short;
    hasLong |= (*command)->team() == Team::Long;
    state->commands.push_back(std::move(*command));
  }
  state->hasOnlyShortTeams = hasShort && !hasLong;
  state->preparedUntil = dependsOnRuns ? 2 * std::max<int64_t>(run, 1)
                                       : std::numeric_limits<int64_t>::max();
  return state;
}

llvm::Expected<std::unique_ptr<LoadedExecutable::RunState>>
LoadedExecutable::acquire(int numThreads) {
  int64_t run;
  {
    std::lock_guard<std::mutex> lock(mutex);
    run = numRuns++;
    for (size_t i = 0; i < idle.size(); ++i) {
      if (idle[i]->numThreads != numThreads)
        continue;
      std::unique_ptr<RunState> state = std::move(idle[i]);
      idle.erase(idle.begin() + i);
      if (run < state->preparedUntil)
        return state;
      break;
    }
  }
  return prepare(numThreads, run);
}

void LoadedExecutable::release(std::unique_ptr<RunState> state) {
  std::lock_guard<std::mutex> lock(mutex);
  idle.push_back(std::move(state));
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

llvm::Error
LoadedExecutable::checkArguments(const LtcRunArguments &arguments) const {
  if (form)
    return failure("Program '{0}' must be bound to sizes before it runs.",
                   message.name());
  if (arguments.num_threads < 1)
    return failure("A program can't run on {0} threads: at least 1 is needed.",
                   arguments.num_threads);
  if ((!parameters.empty() && !arguments.parameters) ||
      (numScalars() && !arguments.scalars) ||
      (!outputs.empty() && !arguments.outputs))
    return failure("Program '{0}' was called without its {1} parameters, {2} "
                   "scalars and {3} outputs.",
                   message.name(), parameters.size(), numScalars(),
                   outputs.size());
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].bytes && !arguments.parameters[i])
      return failure("Parameter {0} ('{1}') of program '{2}' has no memory.", i,
                     parameters[i].name, message.name());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].place == LTC_OUTPUT_CALLER && outputs[i].type.bytes &&
        !arguments.outputs[i])
      return failure("Output {0} of program '{1}' has no memory.", i,
                     message.name());
  return llvm::Error::success();
}

void LoadedExecutable::bindBuffers(RunState &state,
                                   const LtcRunArguments &arguments,
                                   char *arena) const {
  for (int i = 0; i < message.buffers_size(); ++i) {
    const Buffer &buffer = message.buffers(i);
    const void *pointer = nullptr;
    switch (buffer.place_case()) {
    case Buffer::kParameter:
      pointer = arguments.parameters[buffer.parameter()];
      break;
    case Buffer::kScalar:
      pointer = buffer.scalar() < numScalars()
                    ? &arguments.scalars[buffer.scalar()]
                    : &numbers.scalars[buffer.scalar() - numScalars()];
      break;
    case Buffer::kOutput: {
      const LtcOutputInfo &output = outputs[buffer.output()];
      pointer = output.place == LTC_OUTPUT_CALLER
                    ? arguments.outputs[buffer.output()]
                    : arguments.parameters[output.parameter];
      break;
    }
    case Buffer::kArenaOffset:
      pointer = arena + buffer.arena_offset();
      break;
    case Buffer::kConstant:
      pointer = constants[buffer.constant()];
      break;
    case Buffer::PLACE_NOT_SET:
      break;
    }
    state.buffers[i] = static_cast<char *>(const_cast<void *>(pointer));
  }
}

void LoadedExecutable::noteContents(RunState &state,
                                    const LtcRunArguments &arguments) const {
  state.contents.clear();
  if (!arguments.parameter_contents)
    return;
  for (const Buffer &buffer : message.buffers())
    state.contents.push_back(
        buffer.has_parameter() && !isChanged[buffer.parameter()]
            ? arguments.parameter_contents[buffer.parameter()]
            : 0);
}

PreparedCommand &LoadedExecutable::shortCommand(RunState &state, size_t index,
                                                int numThreads) const {
  if (state.numThreadsOfShort != numThreads) {
    state.shortCommands.clear();
    state.shortCommands.resize(state.commands.size());
    state.numThreadsOfShort = numThreads;
  }
  std::optional<PreparedCommandPtr> &prepared = state.shortCommands[index];
  if (!prepared) {
    prepared.emplace();
    Preparation preparation{numThreads, kernels.get(), numbers.tables};
    if (isBound && state.preparedUntil < std::numeric_limits<int64_t>::max())
      preparation.expectedRuns = state.preparedUntil / 2;
    auto command = prepareCommand(message.commands(int(index)), preparation);
    if (!command)
      llvm::consumeError(command.takeError());
    else if ((*command)->scratchBytes() <= state.scratchBytes)
      prepared = std::move(*command);
  }
  return *prepared ? **prepared : *state.commands[index];
}

llvm::Error LoadedExecutable::runCommand(RunState &state, size_t index,
                                         const RunContext &context,
                                         int numThreadsOfShort) const {
  PreparedCommand &command = *state.commands[index];
  if (numThreadsOfShort == state.numThreads || command.team() != Team::Short)
    return command.run(context);
  ThreadCountScope scope(numThreadsOfShort);
  return shortCommand(state, index, numThreadsOfShort).run(context);
}

llvm::Error LoadedExecutable::runCommands(RunState &state, char *scratch,
                                          const LtcRunArguments &arguments) {
  int64_t *nanoseconds = arguments.command_nanoseconds;
  auto notify = [&](size_t command, int begins) {
    if (arguments.command_event)
      arguments.command_event(command, begins,
                              arguments.command_event_user_data);
  };
  RunContext context{state.buffers, scratch, state.contents, &arguments};
  int numThreadsOfShort = state.numThreads;
  if (state.hasOnlyShortTeams)
    numThreadsOfShort = tracingThreadLoad.numThreadsForShortCommands(
        arguments.caller_clock, arguments.num_threads);
  for (size_t i = 0; i < state.commands.size(); ++i) {
    notify(i, 1);
    context.index = i;
    std::chrono::steady_clock::time_point start;
    if (nanoseconds)
      start = std::chrono::steady_clock::now();
    if (arguments.parameters_intact && i == numHarmless)
      *arguments.parameters_intact = 0;
    if (llvm::Error error = runCommand(state, i, context, numThreadsOfShort))
      return failure("Command {0} ('{1}') of program '{2}' failed: {3}", i,
                     commandNames[i], message.name(),
                     llvm::toString(std::move(error)));
    if (nanoseconds)
      nanoseconds[i] = std::chrono::duration_cast<std::chrono::nanoseconds>(
                           std::chrono::steady_clock::now() - start)
                           .count();
    notify(i, 0);
  }
  return llvm::Error::success();
}

llvm::Error LoadedExecutable::run(const LtcRunArguments &arguments) {
  if (arguments.parameters_intact)
    *arguments.parameters_intact = 1;
  if (llvm::Error error = checkArguments(arguments))
    return error;
  auto state = acquire(arguments.num_threads);
  if (!state)
    return state.takeError();
  auto releaseState = llvm::scope_exit([&] { release(std::move(*state)); });

  size_t scratchOffset = alignedSize(message.arena_bytes());
  size_t bytes = scratchOffset + (*state)->scratchBytes;
  std::unique_ptr<Arena> arena;
  if (bytes) {
    auto acquired = ArenaPool::process().acquire(bytes);
    if (!acquired)
      return acquired.takeError();
    arena = std::move(*acquired);
  }
  auto releaseArena = llvm::scope_exit([&] {
    if (arena)
      ArenaPool::process().release(std::move(arena));
  });
  char *base = arena ? arena->data() : nullptr;

  ThreadCountScope scope(arguments.num_threads);
  bindBuffers(**state, arguments, base);
  noteContents(**state, arguments);
  return runCommands(**state, base ? base + scratchOffset : nullptr, arguments);
}
