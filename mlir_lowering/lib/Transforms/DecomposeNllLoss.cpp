//===- DecomposeNllLoss.cpp - Negative log likelihood ---------------------===//
//
// Formulas: aten/src/ATen/native/LossNLL.cpp and LossNLL2d.cpp. The input is
// [C], [N, C] or [N, C, H, W]; a row, the C scores at one position, has one
// target.
//
// torch raises an error for a target that is neither a class nor the ignored
// index. The forward op reads the targets' elements by `gather`, which makes
// the same check.
//
//===----------------------------------------------------------------------===//

#include "FormulaBuilder.h"
#include "LossReduction.h"

#include "torch_ltc/Dialect/Torch/TorchOps_loss.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

namespace {
// A loss op's targets, one for each row, with a class dimension of size 1.
struct Rows {
  int64_t classDim, classes;
  Value target;  // the class; 0 for ignored rows
  Value ignored; // whether the row has no loss and no weight
  Value weight;  // of the target's class, 0 for ignored rows
};
} // namespace

static Rows readRows(FormulaBuilder &b, Value self, Value target, Value weight,
                     int64_t ignoreIndex) {
  Rows rows;
  rows.classDim = b.rank(self) == 1 ? 0 : 1;
  rows.classes = b.sizes(self)[rows.classDim];
  SmallVector<int64_t> sizes(b.sizes(self));
  sizes[rows.classDim] = 1;
  Type int64 =
      mlir::IntegerType::get(self.getContext(), 64, mlir::IntegerType::Signed);
  Value given = b.view(b.cast(target, int64), sizes);

  rows.ignored = b.eq(given, Number(ignoreIndex));
  rows.target = b.maskedFill(given, rows.ignored, Number(0));

  Type dtype = b.computeDtype(b.dtype(self));
  if (b.isNone(weight)) {
    rows.weight = b.cast(b.logicalNot(rows.ignored), dtype);
    return rows;
  }
  Value flat = b.view(rows.target, {b.numElements(rows.target)});
  Value perRow = b.view(b.indexSelect(b.cast(weight, dtype), 0, flat), sizes);
  rows.weight = b.maskedFill(perRow, rows.ignored, 0.0);
  return rows;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

// The loss of a row is -input[target] * weight[target], or 0 if the row is
// ignored. A mean divides the sum of all rows by the sum of the weights, so it
// is NaN if all rows are ignored.
template <typename OpTy>
static LogicalResult decomposeForward(OpTy op, FormulaBuilder &b) {
  Value self = op.getSelf();
  int64_t reduction = b.integer(op.getReduction());
  if (b.sizes(self)[b.rank(self) == 1 ? 0 : 1] == 0)
    return b.fail("there are no classes");
  Rows rows = readRows(b, self, op.getTarget(), op.getWeight(),
                       b.integer(op.getIgnoreIndex()));
  Value picked = b.gather(b.compute(self), rows.classDim, rows.target);
  Value loss = b.mul(b.neg(picked), rows.weight);
  loss = b.maskedFill(loss, rows.ignored, 0.0);

  // For a single target, torch returns a scalar and the total weight even if no
  // reduction is requested.
  Value zero = b.zeros({}, b.resultDtype(1));
  if (reduction == None && b.rank(self) > 1)
    return b.replaceWith({loss, zero});
  SmallVector<int64_t> dims =
      llvm::to_vector(llvm::seq<int64_t>(0, b.rank(self)));
  Value totalWeight = b.sum(rows.weight, dims, /*keepDim=*/false);
  Value total = b.sum(loss, dims, /*keepDim=*/false);
  if (reduction == Mean)
    total = b.div(total, totalWeight);
  return b.replaceWith({total, totalWeight});
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

// -grad * weight[target] (/ total weight) at the target's class, 0 elsewhere.
// Comparing each class index with the target needs no scatter, and fuses with
// log softmax's gradient.
template <typename OpTy>
static LogicalResult decomposeBackward(OpTy op, FormulaBuilder &b) {
  Value self = op.getSelf();
  int64_t reduction = b.integer(op.getReduction());
  Rows rows = readRows(b, self, op.getTarget(), op.getWeight(),
                       b.integer(op.getIgnoreIndex()));
  Value grad = b.compute(op.getGradOutput());
  if (b.rank(grad) > 0)
    grad = b.view(grad, b.sizes(rows.target));
  Value slope = b.mul(b.neg(rows.weight), grad);
  if (reduction == Mean)
    slope = b.div(slope, b.compute(op.getTotalWeight()));
  slope = b.maskedFill(slope, rows.ignored, 0.0);

  SmallVector<int64_t> classSizes(b.rank(self), 1);
  classSizes[rows.classDim] = rows.classes;
  Value classNumbers = b.view(b.arange(rows.classes), classSizes);
  Value isTarget = b.eq(classNumbers, rows.target);
  Value zero = b.zeros({}, b.dtype(slope));
  return b.replaceWith({b.where(isTarget, slope, zero)});
}

void mlir::torch_ltc::populateNllLossDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeForward<AtenNllLossForwardOp>);
  adder.add(decomposeForward<AtenNllLoss2dForwardOp>);
  adder.add(decomposeBackward<AtenNllLossBackwardOp>);
  adder.add(decomposeBackward<AtenNllLoss2dBackwardOp>);
}
