//===- Program.h - The program function and its ops' roles ------*- C++ -*-===//
//
// What the passes of the kernels stage agree on: which function is the
// program, and which of its ops compute, are views, or are cloned on demand.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_KERNELS_PROGRAM_H
#define TORCH_LTC_KERNELS_PROGRAM_H

#include "torch_ltc/Dialect/Ltc/Attributes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::torch_ltc {

/// The one public function with a body; emits an error if there is none or
/// more than one.
FailureOr<func::FuncOp> findProgram(ModuleOp module);

/// What the outliner does with an op of the program's body.
enum class OpRole {
  Compute, ///< becomes (part of) a kernel
  View,    ///< same bytes under another shape or offset: stays
  Call,    ///< a command (ltc dialect): stays
  Clone,   ///< cheap: cloned into each kernel that uses it
  Constant ///< non-splat tensor constant: stays, becomes data
};
OpRole getRole(Operation *op);

/// Values that an op reads, including those captured by its regions.
SetVector<Value> valuesRead(Operation *op);

/// Whether the op only gives its operand another shape; false for null.
bool isReshape(Operation *op);

/// Whether the result of a static slice is one contiguous range of its source.
bool isContiguousSlice(tensor::ExtractSliceOp slice);

/// Elements before the first element of a contiguous slice.
int64_t getSliceOffset(tensor::ExtractSliceOp slice);

/// The value whose memory `value` lies in, and the bytes of it before: views
/// and bounds checks undone.
std::pair<Value, int64_t> lookThroughViews(Value value);

/// Bytes of a contiguous tensor; booleans take a byte each.
int64_t getTensorBytes(Type type);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_KERNELS_PROGRAM_H
