//===- GeneralizeKernel.h - One kernel for all sizes ------------*- C++ -*-===//

#ifndef TORCH_LTC_LIB_CODEGEN_GENERALIZEKERNEL_H
#define TORCH_LTC_LIB_CODEGEN_GENERALIZEKERNEL_H

#include "torch_ltc/Codegen/NumberFitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::torch_ltc {

/// Changes the first of `samples`, one kernel that was lowered to the LLVM
/// dialect at the stand-ins of each sample, to a kernel for all sizes. Each
/// number that differs between the samples is loaded from a table, whose
/// address is the last argument before [begin, end). If no number differs,
/// there is no such argument. Returns the codes of the table's numbers. Emits
/// an error if the samples differ in more than numbers, or if a number isn't a
/// known function of the sizes.
FailureOr<std::vector<NumberCode>>
generalizeKernel(ArrayRef<LLVM::LLVMFuncOp> samples, NumberFitter &fitter);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CODEGEN_GENERALIZEKERNEL_H
