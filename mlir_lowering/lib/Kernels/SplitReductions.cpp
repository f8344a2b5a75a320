//===- SplitReductions.cpp - Large reductions in parts --------------------===//

#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"
#include "torch_ltc/Kernels/TargetCostModel.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "torch_ltc/Kernels/Passes.h.inc"

namespace {

/// Returns the number of parts of a reduction, or 0 if it isn't split. `loop`
/// receives the loop to split.
int64_t choosePartCount(linalg::GenericOp op, unsigned &loop) {
  int64_t parallel = 1, reduced = 1;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (auto [range, kind] : llvm::zip_equal(ranges, op.getIteratorTypesArray()))
    (kind == utils::IteratorType::parallel ? parallel : reduced) *= range;
  if (parallel >= TargetCostModel::splitParallel ||
      reduced < TargetCostModel::splitReduction)
    return 0;
  // Split the outermost reduced loop, because its parts are contiguous.
  for (auto [number, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (kind != utils::IteratorType::reduction || ranges[number] < 2)
      continue;
    loop = number;
    for (int64_t parts = std::min(TargetCostModel::splitParts, ranges[number]);
         parts > 1; --parts)
      if (ranges[number] % parts == 0)
        return parts;
    return 0;
  }
  return 0;
}

/// The op that combines the accumulator with a value, if it is the only such op
/// and has a known neutral element.
Operation *findCombiner(linalg::GenericOp op) {
  SmallVector<Operation *> combiners;
  if (!matchReduction(op.getRegionOutputArgs(), 0, combiners) ||
      combiners.size() != 1 || combiners[0]->getNumOperands() != 2 ||
      !arith::getNeutralElement(combiners[0]))
    return nullptr;
  return combiners[0];
}

/// Splits the operand's dimension that `loop` indexes into two dimensions, the
/// first of size `parts`.
Value splitDimension(OpBuilder &builder, Value operand, AffineMap map,
                     unsigned loop, int64_t parts) {
  auto type = cast<RankedTensorType>(operand.getType());
  SmallVector<ReassociationIndices> groups;
  SmallVector<int64_t> shape;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    groups.push_back({int64_t(shape.size())});
    if (!expr.isFunctionOfDim(loop)) {
      shape.push_back(type.getDimSize(dim));
      continue;
    }
    groups.back().push_back(shape.size() + 1);
    shape.append({parts, type.getDimSize(dim) / parts});
  }
  auto split = RankedTensorType::get(shape, type.getElementType());
  return tensor::ExpandShapeOp::create(builder, operand.getLoc(), split,
                                       operand, groups);
}

/// Splits loop `loop` of the map in two: the loop over the parts becomes the
/// outermost loop, and the loop inside a part stays in place.
AffineMap splitLoop(AffineMap map, unsigned loop) {
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> results;
  for (AffineExpr expr : map.getResults()) {
    if (expr == getAffineDimExpr(loop, context))
      results.push_back(getAffineDimExpr(0, context));
    results.push_back(expr.shiftDims(map.getNumDims(), 1));
  }
  return AffineMap::get(map.getNumDims() + 1, 0, results, context);
}

bool canSplit(linalg::GenericOp op, unsigned loop) {
  for (OpOperand *operand : op.getDpsInputOperands())
    if (!isa<RankedTensorType>(operand->get().getType()))
      return false;
  for (AffineMap map : op.getIndexingMapsArray())
    for (AffineExpr expr : map.getResults())
      if (expr.isFunctionOfDim(loop) && !isa<AffineDimExpr>(expr))
        return false;
  return findCombiner(op) != nullptr;
}

/// Reduces each part. The result is [parts, kept...].
Value reduceParts(OpBuilder &builder, linalg::GenericOp op, unsigned loop,
                  int64_t parts) {
  Location loc = op.getLoc();
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    bool isSplit = map.isFunctionOfDim(loop);
    inputs.push_back(
        isSplit ? splitDimension(builder, operand->get(), map, loop, parts)
                : operand->get());
    maps.push_back(splitLoop(map, loop));
  }
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  SmallVector<int64_t> shape{parts};
  llvm::append_range(shape, type.getShape());
  AffineMap out = splitLoop(op.getIndexingMapsArray().back(), loop);
  SmallVector<AffineExpr> exprs{builder.getAffineDimExpr(0)};
  llvm::append_range(exprs, out.getResults());
  maps.push_back(
      AffineMap::get(out.getNumDims(), 0, exprs, builder.getContext()));
  SmallVector<utils::IteratorType> loops{utils::IteratorType::parallel};
  llvm::append_range(loops, op.getIteratorTypesArray());

  Value neutral = arith::ConstantOp::create(
      builder, loc, *arith::getNeutralElement(findCombiner(op)));
  Value empty =
      tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  Value init =
      linalg::FillOp::create(builder, loc, neutral, empty).getResult(0);
  auto reduced = linalg::GenericOp::create(builder, loc, init.getType(), inputs,
                                           init, maps, loops);
  IRMapping mapping;
  op.getRegion().cloneInto(&reduced.getRegion(), mapping);
  return reduced.getResult(0);
}

/// Reduces the results of the parts.
Value combineParts(OpBuilder &builder, linalg::GenericOp op, Value parts) {
  auto type = cast<RankedTensorType>(parts.getType());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  loops[0] = utils::IteratorType::reduction;
  AffineMap in = builder.getMultiDimIdentityMap(type.getRank());
  Operation *combiner = findCombiner(op);
  return linalg::GenericOp::create(
             builder, op.getLoc(), op.getResult(0).getType(), parts,
             op.getDpsInits()[0],
             ArrayRef{in, in.getSliceMap(1, type.getRank() - 1)}, loops,
             [&](OpBuilder &b, Location l, ValueRange args) {
               Operation *combined = b.clone(*combiner);
               combined->setOperands({args[1], args[0]});
               linalg::YieldOp::create(b, l, combined->getResults());
             })
      .getResult(0);
}

class SplitReductions : public impl::SplitReductionsBase<SplitReductions> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> program = findProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    // A program for all sizes is unchanged, because a divisor of a stand-in
    // doesn't divide all sizes.
    if (getOperation()->hasAttr(kGeneralAttr))
      return;
    SmallVector<linalg::GenericOp> reductions;
    for (auto op : program->getBody().getOps<linalg::GenericOp>())
      if (op.getNumReductionLoops() > 0 && op.getNumDpsInits() == 1 &&
          op.hasPureTensorSemantics() && !op.hasDynamicShape() &&
          !op.hasIndexSemantics())
        reductions.push_back(op);
    for (linalg::GenericOp op : reductions) {
      unsigned loop = 0;
      int64_t parts = choosePartCount(op, loop);
      if (parts == 0 || !canSplit(op, loop))
        continue;
      OpBuilder builder(op);
      Value results = reduceParts(builder, op, loop, parts);
      op.getResult(0).replaceAllUsesWith(combineParts(builder, op, results));
      op.erase();
    }
  }
};

} // namespace
} // namespace mlir::torch_ltc
