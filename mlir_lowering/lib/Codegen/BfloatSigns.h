//===- BfloatSigns.h - Sign bits of bfloat numbers --------------*- C++ -*-===//

#ifndef TORCH_LTC_LIB_CODEGEN_BFLOATSIGNS_H
#define TORCH_LTC_LIB_CODEGEN_BFLOATSIGNS_H

namespace llvm {
class Module;
}

namespace mlir::torch_ltc {

/// Makes the module read the bits of scalar bfloat numbers through float. For
/// an isolated sign bit LLVM 22 selects an x86 instruction that reads bit 63 of
/// the register (TargetLowering::SimplifyDemandedBits creates FGETSIGN for
/// every floating-point type except half and fp128), so the result is always
/// "positive". Must run after all simplifications of the module.
void readBfloatBitsAsFloat(llvm::Module &module);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CODEGEN_BFLOATSIGNS_H
