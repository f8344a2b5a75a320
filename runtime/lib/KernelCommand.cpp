//===- KernelCommand.cpp - Calls of compiled kernels ----------------------===//

#include "KernelLinker.h"
#include "Parallel.h"
#include "PreparedCommand.h"

#include <vector>

using namespace torch_ltc::runtime;

namespace {

/// With at least this many iterations per thread, an iteration probably
/// computes a single element. Each part then begins at a multiple of
/// kElementwiseUnit, so that two threads never write the same cache line and
/// vectors stay aligned.
constexpr int64_t kElementwisePart = 1024;
constexpr int64_t kElementwiseUnit = 64;

class KernelCommand : public PreparedCommand {
public:
  /// `table` contains the kernel's numbers that depend on sizes.
  KernelCommand(const KernelCall &call, KernelFunction function,
                llvm::ArrayRef<int64_t> table, int numThreads)
      : call(call), function(function),
        threads(threadsFor(call.trip_count(), call.grain(), numThreads)),
        unit(call.trip_count() / threads >= kElementwisePart ? kElementwiseUnit
                                                             : 1),
        arguments(call.arguments_size()) {
    if (!table.empty())
      arguments.push_back(const_cast<int64_t *>(table.data()));
  }

  llvm::Error run(const RunContext &context) override {
    for (int i = 0; i < call.arguments_size(); ++i)
      arguments[i] = context.resolve(call.arguments(i));
    void *const *pointers = arguments.data();
    KernelFunction kernel = function;
    parallelFor(call.trip_count(), threads, unit,
                [pointers, kernel](int64_t begin, int64_t end) {
                  kernel(pointers, begin, end);
                });
    return llvm::Error::success();
  }

  Team team() const override {
    return teamFor(threads, call.trip_count(), call.grain());
  }

private:
  const KernelCall &call;
  KernelFunction function;
  int threads;
  int64_t unit;
  std::vector<void *> arguments;
};

} // namespace

llvm::Expected<PreparedCommandPtr>
torch_ltc::runtime::prepareKernel(const Command &command,
                                  const Preparation &preparation) {
  const KernelCall &call = command.kernel();
  llvm::ArrayRef<int64_t> table;
  if (!preparation.tables.empty())
    table = preparation.tables[call.kernel()];
  return std::make_unique<KernelCommand>(
      call, preparation.kernels->function(call.kernel()), table,
      preparation.numThreads);
}
