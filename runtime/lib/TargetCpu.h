//===- TargetCpu.h - The CPU that kernels are compiled for ----------------===//

#ifndef TORCH_LTC_RUNTIME_TARGETCPU_H
#define TORCH_LTC_RUNTIME_TARGETCPU_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace torch_ltc::runtime {

/// Fails with a one-sentence error if this machine lacks a feature that `cpu`
/// names. `cpu` is the `cpu` field of an executable: a CPU name in LLVM's
/// spelling and, after a space, LLVM's feature string ("+avx2,+fma,-amx-tile");
/// without a feature string the features are those of the name.
llvm::Error checkHostRuns(llvm::StringRef cpu);

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_TARGETCPU_H
