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

/// Numbers of a binding that aren't in its commands.
struct BoundNumbers {
  KernelTables tables;
  /// The last scalar parameters.
  std::vector<LtcScalar> scalars;
};

/// Checks the codes and indices of a general form.
llvm::Error verifyGeneralForm(Executable &executable);

/// The values of the form's numbers at `sizes`, if the sizes are in range and
/// those that it checks are as it expects. `name`: of the program, for errors.
llvm::Expected<std::vector<int64_t>> checkSizes(llvm::StringRef name,
                                                const GeneralForm &form,
                                                const LtcSizes &sizes);

/// Replaces the numbers of `executable`, a copy of the one that `form` belongs
/// to, by those for `sizes`, and plans its arena. The result isn't verified
/// yet.
llvm::Expected<BoundNumbers> bindSizes(Executable &executable,
                                       const GeneralForm &form,
                                       const LtcSizes &sizes);

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_SIZEBINDING_H
