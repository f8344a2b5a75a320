//===- LoadedExecutable.h - An executable that can be run -----------------===//

#ifndef TORCH_LTC_RUNTIME_LOADEDEXECUTABLE_H
#define TORCH_LTC_RUNTIME_LOADEDEXECUTABLE_H

#include "Arena.h"
#include "KernelLinker.h"
#include "PreparedCommand.h"
#include "SizeBinding.h"
#include "TracingThreadLoad.h"
#include "torch_ltc-c/runtime.h"

#include "executable.pb.h"

#include "llvm/Support/Error.h"

#include <google/protobuf/arena.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace torch_ltc::runtime {

class LoadedExecutable {
public:
  static llvm::Expected<std::unique_ptr<LoadedExecutable>>
  load(const char *data, size_t size);

  /// Binds this executable to sizes. The result shares code and constants with
  /// this executable. Fails unless this executable is general and valid for the
  /// sizes.
  llvm::Expected<std::unique_ptr<LoadedExecutable>>
  bind(const LtcSizes &sizes) const;

  /// Thread-safe; runs of one executable may overlap in time.
  llvm::Error run(const LtcRunArguments &arguments);

  const Executable &description() const { return message; }
  /// The number of scalars that the caller supplies.
  size_t numScalars() const {
    return message.scalars_size() - numbers.scalars.size();
  }
  const LtcTensorInfo &parameter(size_t index) const {
    return parameters[index];
  }
  const LtcOutputInfo &output(size_t index) const { return outputs[index]; }
  const std::string &commandName(size_t index) const {
    return commandNames[index];
  }

private:
  explicit LoadedExecutable(bool isBound) : isBound(isBound) {}

  /// State that one run at a time uses and later runs reuse.
  struct RunState {
    int numThreads;
    /// The state is prepared again for the run with this number.
    int64_t preparedUntil;
    std::vector<PreparedCommandPtr> commands;
    /// The short commands prepared for fewer threads, created on demand; null
    /// if they would need more scratch memory.
    std::vector<std::optional<PreparedCommandPtr>> shortCommands;
    int numThreadsOfShort = 0;
    /// Whether some commands use a team briefly and none for long. Only then
    /// can a smaller team help the caller: after a single long command, the
    /// whole team would spin on all processors.
    bool hasOnlyShortTeams = false;
    std::vector<char *> buffers;
    /// Ids of the buffers' contents, if the caller provides them; see
    /// RunContext.
    std::vector<uint64_t> contents;
    size_t scratchBytes;
  };

  /// Creates everything that a run needs except code and constants.
  llvm::Error finish();
  void describeSignature();
  void findChangedParameters();
  llvm::Error copyConstants();
  /// Prepares the commands for the run with number `run` and later ones.
  llvm::Expected<std::unique_ptr<RunState>> prepare(int numThreads,
                                                    int64_t run) const;
  llvm::Expected<std::unique_ptr<RunState>> acquire(int numThreads);
  void release(std::unique_ptr<RunState> state);
  llvm::Error checkArguments(const LtcRunArguments &arguments) const;
  void bindBuffers(RunState &state, const LtcRunArguments &arguments,
                   char *arena) const;
  void noteContents(RunState &state, const LtcRunArguments &arguments) const;
  PreparedCommand &shortCommand(RunState &state, size_t index,
                                int numThreads) const;
  llvm::Error runCommand(RunState &state, size_t index,
                         const RunContext &context,
                         int numThreadsOfShort) const;
  llvm::Error runCommands(RunState &state, char *scratch,
                          const LtcRunArguments &arguments);
  void countHarmlessCommands();

  struct MessageDeleter {
    void operator()(Executable *owned) const {
      if (!owned->GetArena())
        delete owned;
    }
  };

  /// Whether this is a general executable bound to sizes, which may never occur
  /// again.
  const bool isBound;
  /// Contains the message of a bound executable: hundreds of objects that are
  /// allocated and freed for each size. The message of a loaded one isn't in
  /// it, because an arena can't free parts.
  google::protobuf::Arena messageMemory;
  std::unique_ptr<Executable, MessageDeleter> ownedMessage{
      google::protobuf::Arena::CreateMessage<Executable>(
          isBound ? &messageMemory : nullptr)};
  /// The message without the objects, the bytes of constants and the general
  /// form.
  Executable &message = *ownedMessage;
  /// The form of a general executable; null for an executable that can run.
  std::unique_ptr<const GeneralForm> form;
  std::shared_ptr<KernelLibrary> kernels;
  BoundNumbers numbers;
  std::shared_ptr<Arena> constantMemory;
  std::vector<char *> constants;
  std::vector<LtcTensorInfo> parameters;
  std::vector<LtcOutputInfo> outputs;
  std::vector<std::string> commandNames;
  /// For each parameter, whether a run writes to its buffer.
  std::vector<bool> isChanged;
  /// Number of leading commands after which all donated parameters certainly
  /// still have their values from before the run.
  size_t numHarmless = 0;

  TracingThreadLoad tracingThreadLoad;
  std::mutex mutex;
  std::vector<std::unique_ptr<RunState>> idle;
  int64_t numRuns = 0;
};

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_LOADEDEXECUTABLE_H
