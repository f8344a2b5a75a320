//===- Program.h - The program and the roles of its ops ---------*- C++ -*-===//
//
// Definitions that the passes of the kernels stage share: which function is the
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

/// Returns the only public function with a body. Emits an error if there is
/// none or more than one, or if the function has branches.
FailureOr<func::FuncOp> findProgram(ModuleOp module);

/// How the outliner treats an op of the program's body.
enum class OpRole {
  Compute, ///< becomes (part of) a kernel
  View,    ///< same bytes, different shape or offset: stays
  Call,    ///< a command (ltc dialect): stays
  Clone,   ///< cheap: cloned into each kernel that uses it
  Constant ///< non-splat tensor constant: stays, becomes data
};
OpRole getRole(Operation *op);

/// The tensor whose bytes an op with the role View shows.
Value getViewSource(Operation *view);

/// Values that an op reads, including those captured by its regions.
SetVector<Value> valuesRead(Operation *op);

/// Whether the op only reshapes its operand; false for null.
bool isReshape(Operation *op);

/// Whether the result of a static slice is one contiguous range of its source.
bool isContiguousSlice(tensor::ExtractSliceOp slice);

/// Number of elements in front of a contiguous slice in its source.
int64_t getSliceOffset(tensor::ExtractSliceOp slice);

/// The value whose memory contains `value`, and the byte offset of `value` in
/// it; looks through views and bounds checks.
std::pair<Value, int64_t> lookThroughViews(Value value);

/// Size of a contiguous tensor in bytes, with one byte for each boolean. Scalar
/// parameters have 8 bytes.
int64_t getTensorBytes(Type type);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_KERNELS_PROGRAM_H
