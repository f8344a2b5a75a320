//===- DecomposeDataMovement.cpp - Lists of tensors, pixel shuffles -------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_data_movement.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

static LogicalResult decomposeStack(AtenStackOp op, FormulaBuilder &b) {
  SmallVector<Value> parts;
  int64_t dim = b.integer(op.getDim());
  if (dim < 0)
    dim += b.resultSizes().size();
  for (Value tensor :
       op.getTensors().getDefiningOp<PrimListConstructOp>().getElements())
    parts.push_back(b.unsqueeze(b.cast(tensor, b.resultDtype()), dim));
  return b.replaceWith({b.concatenate(parts, dim, b.resultSizes())});
}

// Replaces an op that returns a list by a prim.ListConstruct of slices, which
// folds with the prim.ListUnpack that uses it.
static LogicalResult replaceBySlices(FormulaBuilder &b, Value self, int64_t dim,
                                     ArrayRef<int64_t> sizes) {
  SmallVector<Value> parts;
  int64_t start = 0;
  for (int64_t size : sizes) {
    parts.push_back(b.slice(self, dim, start, start + size));
    start += size;
  }
  return b.replaceWith({b.listOf(parts)});
}

static LogicalResult decomposeSplit(AtenSplitTensorOp op, FormulaBuilder &b) {
  Value self = op.getSelf();
  int64_t dim = b.dimension(op.getDim(), b.rank(self));
  int64_t size = b.sizes(self)[dim], step = b.integer(op.getSplitSize());
  SmallVector<int64_t> sizes;
  // A split size of 0 is only allowed for an empty dimension; the result is one
  // part.
  for (int64_t start = 0; start < std::max<int64_t>(size, 1);
       start += std::max<int64_t>(step, 1))
    sizes.push_back(std::min(step, size - start));
  return replaceBySlices(b, self, dim, sizes);
}

static LogicalResult decomposeSplitWithSizes(AtenSplitWithSizesOp op,
                                             FormulaBuilder &b) {
  Value self = op.getSelf();
  return replaceBySlices(b, self, b.dimension(op.getDim(), b.rank(self)),
                         b.integers(op.getSplitSizes()));
}

static LogicalResult decomposeUnbind(AtenUnbindIntOp op, FormulaBuilder &b) {
  Value self = op.getSelf();
  int64_t dim = b.dimension(op.getDim(), b.rank(self));
  SmallVector<Value> parts;
  for (int64_t index = 0; index < b.sizes(self)[dim]; ++index)
    parts.push_back(b.select(self, dim, index));
  return b.replaceWith({b.listOf(parts)});
}

// [*, C * r * r, H, W] -> [*, C, r, r, H, W] -> [*, C, H, r, W, r]
// -> [*, C, H * r, W * r]
static LogicalResult decomposePixelShuffle(AtenPixelShuffleOp op,
                                           FormulaBuilder &b) {
  Value x = op.getSelf();
  int64_t r = b.integer(op.getUpscaleFactor()), outer = b.rank(x) - 3;
  ArrayRef<int64_t> channels = b.sizes(x).take_back(3);
  SmallVector<int64_t> sizes(b.sizes(x).drop_back(3));
  sizes.append({channels[0] / (r * r), r, r, channels[1], channels[2]});
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, outer));
  order.append({outer, outer + 3, outer + 1, outer + 4, outer + 2});
  return b.replaceWith({b.permute(b.view(x, sizes), order)});
}

// [*, C, H * r, W * r] -> [*, C, H, r, W, r] -> [*, C, r, r, H, W]
// -> [*, C * r * r, H, W]
static LogicalResult decomposePixelUnshuffle(AtenPixelUnshuffleOp op,
                                             FormulaBuilder &b) {
  Value x = op.getSelf();
  int64_t r = b.integer(op.getDownscaleFactor()), outer = b.rank(x) - 3;
  ArrayRef<int64_t> channels = b.sizes(x).take_back(3);
  SmallVector<int64_t> sizes(b.sizes(x).drop_back(3));
  sizes.append({channels[0], channels[1] / r, r, channels[2] / r, r});
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, outer));
  order.append({outer, outer + 2, outer + 4, outer + 1, outer + 3});
  return b.replaceWith({b.permute(b.view(x, sizes), order)});
}

void mlir::torch_ltc::populateDataMovementDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeStack);
  adder.add(decomposeSplit);
  adder.add(decomposeSplitWithSizes);
  adder.add(decomposeUnbind);
  adder.add(decomposePixelShuffle);
  adder.add(decomposePixelUnshuffle);
}
