//===- BoundsCheckCommand.cpp - Checks of indices and integer divisors ----===//

#include "DataType.h"
#include "Diagnostics.h"
#include "PreparedCommand.h"

using namespace torch_ltc::runtime;

namespace {

class BoundsCheckCommand : public PreparedCommand {
public:
  explicit BoundsCheckCommand(const Command &command)
      : command(command), check(command.bounds_check()) {}

  llvm::Error run(const RunContext &context) override {
    const char *indices = context.resolve(check.indices());
    if (check.nonzero())
      return runNonzero(context, indices);
    return check.dtype() == INT32
               ? checkRange(context, reinterpret_cast<const int32_t *>(indices))
               : checkRange(context,
                            reinterpret_cast<const int64_t *>(indices));
  }

private:
  template <typename Index>
  llvm::Error checkRange(const RunContext &context,
                         const Index *indices) const {
    // The loop has no early exit, so that it can be vectorized.
    bool isWrong = false;
    for (int64_t i = 0; i < check.count(); ++i)
      isWrong |= indices[i] < check.lower() || indices[i] >= check.upper();
    if (!isWrong)
      return llvm::Error::success();
    for (int64_t i = 0;; ++i)
      if (indices[i] < check.lower() || indices[i] >= check.upper())
        return outOfRange(context, indices[i], i);
  }

  llvm::Error runNonzero(const RunContext &context,
                         const char *divisors) const {
    bool hasZero = false;
    switch (elementBytes(check.dtype())) {
    case 1:
      hasZero = findZero(reinterpret_cast<const int8_t *>(divisors));
      break;
    case 2:
      hasZero = findZero(reinterpret_cast<const int16_t *>(divisors));
      break;
    case 4:
      hasZero = findZero(reinterpret_cast<const int32_t *>(divisors));
      break;
    default:
      hasZero = findZero(reinterpret_cast<const int64_t *>(divisors));
    }
    if (!hasZero)
      return llvm::Error::success();
    return failure("ZeroDivisionError: an integer is divided by zero{0}.",
                   place(context));
  }

  template <typename Divisor> bool findZero(const Divisor *divisors) const {
    bool found = false;
    for (int64_t i = 0; i < check.count(); ++i)
      found |= divisors[i] == 0;
    return found;
  }

  std::string place(const RunContext &context) const {
    const char *line = context.locationOf(command);
    if (!*line)
      return "; option source_info shows the Python line";
    return llvm::formatv(" (at {0})", line);
  }

  llvm::Error outOfRange(const RunContext &context, int64_t index,
                         int64_t position) const {
    return failure("index {0} (element {1} of {2}) is out of range: it must "
                   "be at least {3} and below {4}{5}.",
                   index, position, check.count(), check.lower(), check.upper(),
                   place(context));
  }

  const Command &command;
  const BoundsCheck &check;
};

} // namespace

llvm::Expected<PreparedCommandPtr>
torch_ltc::runtime::prepareBoundsCheck(const Command &command,
                                       const Preparation &) {
  return std::make_unique<BoundsCheckCommand>(command);
}
