//===- ExecutableVerifier.h - Checks before anything is run ---------------===//
//
// An executable may come from a cache file that another process, version or
// disk has damaged in a way that the checksum does not see. Nothing is run of
// an executable that could read or write outside its buffers, kernels' own
// code excepted.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_EXECUTABLEVERIFIER_H
#define TORCH_LTC_RUNTIME_EXECUTABLEVERIFIER_H

#include "ConvolutionGeometry.h"

#include "executable.pb.h"

#include "llvm/Support/Error.h"

namespace torch_ltc::runtime {

/// Checks every index, offset, size and dtype. The error is a sentence that
/// names the part ("command 3 'aten.mm'") and what is wrong with it.
llvm::Error verifyExecutable(const Executable &executable);

/// Bytes of a tensor; the type must be valid.
uint64_t tensorBytes(const TensorType &type);

/// Checks that the sizes of a convolution fit together and returns them.
llvm::Expected<ConvolutionGeometry>
convolutionGeometry(const ConvolutionCall &call);

// What verifyExecutable does last, in CommandVerifier.cpp.
llvm::Error verifyCommands(const Executable &executable);

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_EXECUTABLEVERIFIER_H
