//===- BfloatSigns.h - Sign bits of bfloat numbers --------------*- C++ -*-===//

#ifndef TORCH_LTC_LIB_CODEGEN_BFLOATSIGNS_H
#define TORCH_LTC_LIB_CODEGEN_BFLOATSIGNS_H

namespace llvm {
class Module;
}

namespace mlir::torch_ltc {

/// Reads the bits of scalar bfloat numbers by way of float. LLVM 22 selects an
/// x86 instruction for a lone sign bit that looks at bit 63 of the register
/// (TargetLowering::SimplifyDemandedBits makes an FGETSIGN of every floating
/// type but half and fp128): the answer is always "positive". To be called
/// when nothing simplifies the module any more.
void readBfloatBitsAsFloat(llvm::Module &module);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CODEGEN_BFLOATSIGNS_H
