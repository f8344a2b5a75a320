//===- PreparedCommand.h - Commands ready to run --------------------------===//
//
// A command of the executable, prepared for a fixed number of threads: library
// primitives exist, scratch memory is known. A prepared command belongs to one
// run at a time (oneDNN's memory objects hold the run's addresses); several
// runs at once have a set of prepared commands each.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_PREPAREDCOMMAND_H
#define TORCH_LTC_RUNTIME_PREPAREDCOMMAND_H

#include "Parallel.h"
#include "torch_ltc-c/runtime.h"

#include "executable.pb.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace torch_ltc::runtime {

class KernelLibrary;

/// What a command sees of the run it belongs to.
struct RunContext {
  /// Start of each buffer of the executable.
  llvm::ArrayRef<char *> buffers;
  /// At least `scratchBytes()` bytes, 64-byte aligned, shared by all commands
  /// of the run: contents are undefined at the start of a command.
  char *scratch;
  /// What each buffer holds, as in `LtcRunArguments::parameter_contents`;
  /// empty: unknown.
  llvm::ArrayRef<uint64_t> contents = {};
  const LtcRunArguments *arguments = nullptr;
  /// The command that runs.
  size_t index = 0;

  /// Its line, for errors.
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

  /// Runs on the calling thread, whose OpenMP thread count is the one that the
  /// command was prepared for.
  virtual llvm::Error run(const RunContext &context) = 0;

  /// How many of the threads it was prepared for it uses, and how long.
  virtual Team team() const { return Team::None; }

  /// Bytes of scratch memory that `run` needs.
  virtual size_t scratchBytes() const { return 0; }
};

using PreparedCommandPtr = std::unique_ptr<PreparedCommand>;

/// Prepares a verified command. `command` and `kernels` must outlive the
/// result. Call with the OpenMP thread count set to `numThreads`.
llvm::Expected<PreparedCommandPtr> prepareCommand(const Command &command,
                                                  const KernelLibrary &kernels,
                                                  int numThreads);

// One for each kind of call.
PreparedCommandPtr prepareKernelCall(const KernelCall &call,
                                     const KernelLibrary &kernels,
                                     int numThreads);
llvm::Expected<PreparedCommandPtr> prepareMatmul(const MatmulCall &call,
                                                 int numThreads);
llvm::Expected<PreparedCommandPtr>
prepareConvolution(const ConvolutionCall &call, int numThreads);
PreparedCommandPtr prepareAttention(const AttentionCall &call, int numThreads);
PreparedCommandPtr prepareCopy(const CopyCall &call, int numThreads);
PreparedCommandPtr prepareFill(const FillCall &call, int numThreads);
/// The whole command: its error names the op and the user's line.
PreparedCommandPtr prepareBoundsCheck(const Command &command);
llvm::Expected<PreparedCommandPtr> prepareHostCall(const Command &command);

/// The command's own name, or one made of its kind and sizes
/// ("matmul 512x256x256").
std::string displayName(const Command &command);

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_PREPAREDCOMMAND_H
