//===- ReduceProgram.h - Reduction of programs ------------------*- C++ -*-===//

#ifndef TORCH_LTC_TOOLS_REDUCEPROGRAM_H
#define TORCH_LTC_TOOLS_REDUCEPROGRAM_H

namespace mlir::torch_ltc {

/// Registers --ltc-reduce-program.
void registerReduceProgramPass();

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_TOOLS_REDUCEPROGRAM_H
