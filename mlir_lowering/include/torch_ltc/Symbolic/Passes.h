//===- Passes.h - Passes of programs for all sizes --------------*- C++ -*-===//

#ifndef TORCH_LTC_SYMBOLIC_PASSES_H
#define TORCH_LTC_SYMBOLIC_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::torch_ltc {

#define GEN_PASS_DECL
#include "torch_ltc/Symbolic/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "torch_ltc/Symbolic/Passes.h.inc"

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_SYMBOLIC_PASSES_H
