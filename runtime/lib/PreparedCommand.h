//===- PreparedCommand.h - Commands ready to run --------------------------===//
//
// A command of the executable, prepared for a fixed number of threads: its
// library primitives exist, and its scratch size is known. A prepared command
// belongs to one run at a time (oneDNN's memory objects hold the run's
// addresses); each of several simultaneous runs has its own set.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_PREPAREDCOMMAND_H
#define TORCH_LTC_RUNTIME_PREPAREDCOMMAND_H

#include "Parallel.h"
#include "SizeBinding.h"
#include "torch_ltc-c/runtime.h"

#include "executable.pb.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <limits>
#include <memory>
#include <string>

namespace torch_ltc::runtime {

class KernelLibrary;

/// The state of a run that its commands can access.
struct RunContext {
  /// Address of each buffer of the executable.
  llvm::ArrayRef<char *> buffers;
  /// Scratch memory of at least `scratchBytes()` bytes, 64-byte aligned, shared
  /// by all commands of the run: contents are undefined at the start of a
  /// command.
  char *scratch;
  /// Id of each buffer's contents, as in
  /// `LtcRunArguments::parameter_contents`; empty if the caller provides none.
  llvm::ArrayRef<uint64_t> contents = {};
  const LtcRunArguments *arguments = nullptr;
  /// Index of the command that runs.
  size_t index = 0;

  /// The user's line of the running command, for errors and host calls.
  const char *locationOf(const Command &command) const {
    return arguments && arguments->command_location
               ? arguments->command_location(
                     index, arguments->command_location_user_data)
               : command.location().c_str();
  }
  char *resolve(const BufferRef &ref) const {
    return buffers[ref.buffer()] + ref.offset();
  }
  uint64_t contentsOf(const BufferRef &ref) const {
    return contents.empty() ? 0 : contents[ref.buffer()];
  }
};

class PreparedCommand {
public:
  virtual ~PreparedCommand() = default;

  /// Runs on the calling thread, whose OpenMP thread count must be the one that
  /// the command was prepared for.
  virtual llvm::Error run(const RunContext &context) = 0;

  /// How the command uses the threads that it was prepared for.
  virtual Team team() const { return Team::None; }

  /// Bytes of scratch memory that `run` needs.
  virtual size_t scratchBytes() const { return 0; }
};

using PreparedCommandPtr = std::unique_ptr<PreparedCommand>;

/// The context in which commands are prepared. Kernels and tables must outlive
/// the commands.
struct Preparation {
  /// The calling thread's OpenMP thread count must have this value.
  int numThreads;
  const KernelLibrary *kernels = nullptr;
  /// The table of each kernel; empty unless the executable is bound.
  llvm::ArrayRef<std::vector<int64_t>> tables = {};
  /// How often the commands will presumably run. Preparing a command may take
  /// longer than running it, in another way that needs no preparation.
  int64_t expectedRuns = std::numeric_limits<int64_t>::max();
  /// Set to true if a command would be prepared in another way for more runs.
  bool *dependsOnRuns = nullptr;
};

/// Prepares a verified command, which must outlive the result.
llvm::Expected<PreparedCommandPtr>
prepareCommand(const Command &command, const Preparation &preparation);

// Declares a function for each kind of call (for example, `prepareMatmul`).
#define RUNTIME_CALL(Name, field)                                              \
  llvm::Expected<PreparedCommandPtr> prepare##Name(                            \
      const Command &command, const Preparation &preparation);
#include "Calls.def"

/// The command's name, or one derived from its kind and sizes ("matmul
/// 512x256x256").
std::string displayName(const Command &command);

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_PREPAREDCOMMAND_H
