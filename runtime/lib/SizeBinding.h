//===- SizeBinding.h - Sizes of a general executable ----------------------===//

#ifndef TORCH_LTC_RUNTIME_SIZEBINDING_H
#define TORCH_LTC_RUNTIME_SIZEBINDING_H

#include "torch_ltc-c/runtime.h"

#include "executable.pb.h"

#include "llvm/Support/Error.h"

#include <vector>

namespace torch_ltc::runtime {

/// The table of each kernel, in the order of `Executable.kernels`.
using KernelTables = std::vector<std::vector<int64_t>>;

/// The numbers of a bound executable that aren't in its commands.
struct BoundNumbers {
  KernelTables tables;
  /// The values of the last scalar parameters.
  std::vector<LtcScalar> scalars;
};

/// Checks the code of each number and the indices of a general form.
llvm::Error verifyGeneralForm(Executable &executable);

/// Returns the values of the form's numbers for `sizes`. Fails if a size is out
/// of range or a checked number doesn't have the value that the form expects.
/// Errors contain `name`, the name of the program.
llvm::Expected<std::vector<int64_t>> checkSizes(llvm::StringRef name,
                                                const GeneralForm &form,
                                                const LtcSizes &sizes);

/// Replaces the numbers of `executable`, a copy of the general executable of
/// `form`, by those for `sizes`, and plans its arena. The caller must verify
/// the bound executable.
llvm::Expected<BoundNumbers> bindSizes(Executable &executable,
                                       const GeneralForm &form,
                                       const LtcSizes &sizes);

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_SIZEBINDING_H
