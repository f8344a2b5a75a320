//===- ExecutableVerifier.h - Checks before an executable runs ------------===//
//
// An executable may come from a cache file that another process, another
// version or a disk error has damaged in a way that the checksum doesn't
// detect. An executable that could read or write outside its buffers is never
// run; only the code of kernels isn't checked.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_EXECUTABLEVERIFIER_H
#define TORCH_LTC_RUNTIME_EXECUTABLEVERIFIER_H

#include "ConvolutionGeometry.h"

#include "executable.pb.h"

#include "llvm/Support/Error.h"

namespace torch_ltc::runtime {

/// Checks every index, offset, size and dtype; for a general executable, only
/// what doesn't depend on sizes. The error is a sentence that names the part
/// ("command 3 'aten.mm'") and the problem.
llvm::Error verifyExecutable(Executable &executable);

/// Checks what depends on sizes, for an executable that was bound from a
/// verified general executable. The kernels' code and the constants have been
/// moved elsewhere.
llvm::Error verifyBinding(const Executable &executable);

/// Bytes of a tensor; the type must be valid.
uint64_t tensorBytes(const TensorType &type);

/// Checks that the sizes of a convolution are consistent and returns them.
llvm::Expected<ConvolutionGeometry>
convolutionGeometry(const ConvolutionCall &call);

/// Checks every command, given the sizes that the executable states. Defined in
/// CommandVerifier.cpp.
llvm::Error verifyCommands(const Executable &executable);

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_EXECUTABLEVERIFIER_H
