//===- PlanText.h - Commands and buffers of a program as JSON ---*- C++ -*-===//

#ifndef TORCH_LTC_LIB_CODEGEN_PLANTEXT_H
#define TORCH_LTC_LIB_CODEGEN_PLANTEXT_H

#include "torch_ltc/Kernels/BufferPlan.h"

#include <string>

namespace mlir::torch_ltc {

/// Returns the contents of stage "plan", for tools that read a program at the
/// kernels stage:
///
///   {"arena_bytes": 4096,
///    "commands": [{"op": "kernel_call", "callee": "k_3F", "ops": ["aten.add"],
///                  "modules": ["body.0"], "lines": ["train.py:31"],
///                  "operands": [{"buffer": 0, "offset": 0}],
///                  "results": [{"type": "4x5xf32", "bytes": 80, "buffer": 2,
///                               "offset": 0}]}],
///    "buffers": [{"place": "arena", "offset": 64, "bytes": 80, "first": 0,
///                 "last": 3}],
///    "outputs": [{"buffer": 2, "offset": 0}]}
///
/// Buffers in other places have an "index" instead of an "offset". A buffer
/// that commands write is live from the first command that writes it to the
/// last that uses it. An output is live to the end, for which "last" is the
/// number of commands.
std::string planText(func::FuncOp program, const BufferPlan &plan);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CODEGEN_PLANTEXT_H
