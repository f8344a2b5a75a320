//===- NormalizeOps.cpp - Normalization of ops to few forms ---------------===//

#include "torch_ltc/Dialect/Ltc/SizeOrder.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_NORMALIZEOPS
#include "torch_ltc/Kernels/Passes.h.inc"

namespace {

Value createEmpty(OpBuilder &builder, Location loc, RankedTensorType type) {
  return tensor::EmptyOp::create(builder, loc, type.getShape(),
                                 type.getElementType());
}

/// Returns `numElements` elements of the flattened `source`, from `offset` on.
Value flatRange(RewriterBase &rewriter, Location loc, Value source,
                int64_t offset, int64_t numElements) {
  auto type = cast<RankedTensorType>(source.getType());
  if (type.getRank() > 1) {
    ReassociationIndices all(
        llvm::to_vector<2>(llvm::seq<int64_t>(0, type.getRank())));
    source = tensor::CollapseShapeOp::create(
        rewriter, loc, source, SmallVector<ReassociationIndices>{all});
  }
  if (numElements == type.getNumElements())
    return source;
  auto index = [&](int64_t value) -> OpFoldResult {
    return rewriter.getIndexAttr(value);
  };
  return tensor::ExtractSliceOp::create(rewriter, loc, source, index(offset),
                                        index(numElements), index(1));
}

/// Rewrites a slice that isn't contiguous as a generic that reads a range of
/// the flattened source at the sum of stride * index over its loops. The
/// generic can't read the source in its shape: if a loop is a whole index,
/// linalg requires the loop to have the size of the dimension that it reads,
/// and the loops of x[:, :3] don't.
///
/// The range, a view, begins at the slice's first element and ends with its
/// last one, so that all columns of a matrix have the same kernel. In a program
/// for all sizes, the range is the whole source, because `NumberFitter` finds a
/// size as a function of other sizes, but often doesn't find the length of a
/// range.
Value generalizeSlice(RewriterBase &rewriter, tensor::ExtractSliceOp slice) {
  RankedTensorType type = slice.getResultType();
  RankedTensorType sourceType = slice.getSourceType();
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  SmallVector<int64_t> factors = computeStrides(sourceType.getShape());
  AffineExpr position = rewriter.getAffineConstantExpr(0);
  int64_t first = 0, last = 0;
  int64_t loop = 0;
  SmallVector<int64_t> stepped;
  for (auto [dim, factor] : llvm::enumerate(factors)) {
    first += slice.getStaticOffset(dim) * factor;
    if (dropped.test(dim))
      continue;
    if (slice.getStaticStride(dim) != 1)
      stepped.push_back(loop);
    int64_t step = slice.getStaticStride(dim) * factor;
    position = position + rewriter.getAffineDimExpr(loop++) * step;
    last += step * (slice.getStaticSize(dim) - 1);
  }
  int64_t length = last + 1;
  if (type.getNumElements() == 0)
    first = length = 0;
  if (isForAllSizes(slice)) {
    position = position + first;
    first = 0;
    length = sourceType.getNumElements();
  }
  Value source =
      flatRange(rewriter, slice.getLoc(), slice.getSource(), first, length);
  AffineMap in = AffineMap::get(type.getRank(), 0, position);
  AffineMap out = rewriter.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  auto read = linalg::GenericOp::create(
      rewriter, slice.getLoc(), type, source,
      createEmpty(rewriter, slice.getLoc(), type), ArrayRef{in, out}, loops,
      [](OpBuilder &b, Location l, ValueRange args) {
        linalg::YieldOp::create(b, l, args[0]);
      });
  if (isForAllSizes(slice) && !stepped.empty())
    read->setAttr(kSteppedAttr, rewriter.getDenseI64ArrayAttr(stepped));
  return read.getResult(0);
}

/// Rewrites a slice with offsets that aren't constant (for example, parameters
/// of the program) as a generic whose body reads the source at computed
/// positions. The generic can be fused into its readers.
Value readSliceAt(RewriterBase &rewriter, tensor::ExtractSliceOp slice) {
  RankedTensorType type = slice.getResultType();
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  SmallVector<OpFoldResult> offsets = slice.getMixedOffsets();
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  AffineMap map = rewriter.getMultiDimIdentityMap(type.getRank());
  auto emit = [&](OpBuilder &b, Location l, ValueRange) {
    SmallVector<Value> indices;
    int64_t loop = 0;
    for (auto [dim, offset, stride] :
         llvm::enumerate(offsets, slice.getStaticStrides())) {
      Value index = getValueOrCreateConstantIndexOp(b, l, offset);
      if (!dropped.test(dim)) {
        Value step = linalg::IndexOp::create(b, l, loop++);
        if (stride != 1)
          step = arith::MulIOp::create(
              b, l, step, arith::ConstantIndexOp::create(b, l, stride));
        index = arith::AddIOp::create(b, l, index, step);
      }
      indices.push_back(index);
    }
    Value element = tensor::ExtractOp::create(b, l, slice.getSource(), indices);
    linalg::YieldOp::create(b, l, element);
  };
  return linalg::GenericOp::create(rewriter, slice.getLoc(), type, ValueRange(),
                                   createEmpty(rewriter, slice.getLoc(), type),
                                   ArrayRef{map}, loops, emit)
      .getResult(0);
}

bool hasStaticSizes(tensor::ExtractSliceOp slice) {
  return slice.getSourceType().hasStaticShape() &&
         llvm::none_of(slice.getStaticSizes(), ShapedType::isDynamic) &&
         llvm::none_of(slice.getStaticStrides(), ShapedType::isDynamic);
}

bool isStaticSlice(tensor::ExtractSliceOp slice) {
  return hasStaticSizes(slice) &&
         llvm::none_of(slice.getStaticOffsets(), ShapedType::isDynamic);
}

Value insertAll(RewriterBase &rewriter, tensor::ConcatOp concat) {
  RankedTensorType type = concat.getResultType();
  Value result = createEmpty(rewriter, concat.getLoc(), type);
  int64_t offset = 0;
  for (Value part : concat.getInputs()) {
    auto partType = cast<RankedTensorType>(part.getType());
    SmallVector<OpFoldResult> offsets(type.getRank(), rewriter.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(type.getRank(), rewriter.getIndexAttr(1));
    offsets[concat.getDim()] = rewriter.getIndexAttr(offset);
    result = tensor::InsertSliceOp::create(
        rewriter, concat.getLoc(), part, result, offsets,
        getAsIndexOpFoldResult(rewriter.getContext(), partType.getShape()),
        strides);
    offset += partType.getDimSize(concat.getDim());
  }
  return result;
}

Value insertIntoPadding(RewriterBase &rewriter, tensor::PadOp pad) {
  Value scalar = pad.getConstantPaddingValue();
  auto type = pad.getResultType();
  bool isStatic = type.hasStaticShape() &&
                  llvm::none_of(pad.getStaticLow(), [](int64_t low) {
                    return ShapedType::isDynamic(low) || low < 0;
                  });
  if (!scalar || !isStatic)
    return {};
  Location loc = pad.getLoc();
  Value filled = linalg::FillOp::create(rewriter, loc, scalar,
                                        createEmpty(rewriter, loc, type))
                     .getResult(0);
  SmallVector<OpFoldResult> strides(type.getRank(), rewriter.getIndexAttr(1));
  return tensor::InsertSliceOp::create(
      rewriter, loc, pad.getSource(), filled, pad.getMixedLowPad(),
      getAsIndexOpFoldResult(rewriter.getContext(),
                             pad.getSourceType().getShape()),
      strides);
}

/// Replaces a reduction over one element by its body, applied to the
/// accumulator's initial value: without a loop, nothing would initialize the
/// accumulator.
void unreduceSingleElements(RewriterBase &rewriter, linalg::GenericOp op) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  bool hasReduction = false;
  for (auto [range, kind] : llvm::zip(ranges, kinds)) {
    if (kind != utils::IteratorType::reduction)
      continue;
    if (range != 1)
      return;
    hasReduction = true;
    kind = utils::IteratorType::parallel;
  }
  if (!hasReduction || !op.hasPureTensorSemantics())
    return;
  Location loc = op.getLoc();
  SmallVector<Value> outputs, starts;
  for (Value init : op.getOutputs()) {
    auto fill = init.getDefiningOp<linalg::FillOp>();
    if (!fill)
      return;
    starts.push_back(fill.getInputs()[0]);
    outputs.push_back(
        createEmpty(rewriter, loc, cast<RankedTensorType>(init.getType())));
  }
  auto parallel = linalg::GenericOp::create(rewriter, loc, op.getResultTypes(),
                                            op.getInputs(), outputs,
                                            op.getIndexingMapsArray(), kinds);
  rewriter.inlineRegionBefore(op.getRegion(), parallel.getRegion(),
                              parallel.getRegion().begin());
  for (auto [accumulator, start] :
       llvm::zip(parallel.getRegionOutputArgs(), starts))
    rewriter.replaceAllUsesWith(accumulator, start);
  rewriter.replaceOp(op, parallel.getResults());
}

class NormalizeOps : public impl::NormalizeOpsBase<NormalizeOps> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> program = findProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    for (Operation &op : llvm::make_early_inc_range(program->getBody().front()))
      normalize(rewriter, &op);
  }

  void normalize(IRRewriter &rewriter, Operation *op) {
    rewriter.setInsertionPoint(op);
    Value replacement;
    if (auto named = dyn_cast<linalg::LinalgOp>(op)) {
      if (!isa<linalg::GenericOp, linalg::FillOp>(op))
        (void)linalg::generalizeNamedOp(rewriter, named);
      else if (auto generic = dyn_cast<linalg::GenericOp>(op))
        unreduceSingleElements(rewriter, generic);
      return;
    }
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      if (isStaticSlice(slice) && !isContiguousSlice(slice))
        replacement = generalizeSlice(rewriter, slice);
      else if (!isStaticSlice(slice) && hasStaticSizes(slice))
        replacement = readSliceAt(rewriter, slice);
    } else if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
      replacement = insertAll(rewriter, concat);
    } else if (auto pad = dyn_cast<tensor::PadOp>(op)) {
      replacement = insertIntoPadding(rewriter, pad);
    } else if (isa<tensor::FromElementsOp, tensor::SplatOp>(op)) {
      auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
      if (op->getNumOperands() == 1 && type && type.hasStaticShape())
        replacement =
            linalg::FillOp::create(rewriter, op->getLoc(), op->getOperand(0),
                                   createEmpty(rewriter, op->getLoc(), type))
                .getResult(0);
    }
    if (replacement)
      rewriter.replaceOp(op, replacement);
  }
};

} // namespace
} // namespace mlir::torch_ltc
