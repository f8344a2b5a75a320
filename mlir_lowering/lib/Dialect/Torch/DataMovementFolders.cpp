//===- DataMovementFolders.cpp - Views that change nothing ----------------===//
//
// Tensors are values in row-major order, so a view or slice whose result has
// the type of its operand equals the operand.
//
//===----------------------------------------------------------------------===//

#include "torch_ltc/Dialect/Torch/Permutations.h"
#include "torch_ltc/Dialect/Torch/TorchOps_data_movement.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::torch_ltc::torch;

static Value intConstant(OpBuilder &builder, Location loc, int64_t value) {
  return ConstantIntOp::create(builder, loc, IntType::get(builder.getContext()),
                               builder.getI64IntegerAttr(value));
}

static Value intList(OpBuilder &builder, Location loc,
                     ArrayRef<int64_t> values) {
  auto elements = llvm::map_to_vector(
      values, [&](int64_t value) { return intConstant(builder, loc, value); });
  Type intType = IntType::get(builder.getContext());
  return PrimListConstructOp::create(
      builder, loc, ListType::get(builder.getContext(), intType), elements);
}

static ValueTensorType tensorType(Value value) {
  return cast<ValueTensorType>(value.getType());
}

OpFoldResult AtenViewOp::fold() { return foldSameType(getSelf(), getResult()); }
OpFoldResult Aten_UnsafeViewOp::fold() {
  return foldSameType(getSelf(), getResult());
}
OpFoldResult AtenExpandOp::fold() {
  return foldSameType(getSelf(), getResult());
}
OpFoldResult AtenSqueezeOp::fold() {
  return foldSameType(getSelf(), getResult());
}
OpFoldResult AtenSqueezeDimOp::fold() {
  return foldSameType(getSelf(), getResult());
}
OpFoldResult AtenSqueezeDimsOp::fold() {
  return foldSameType(getSelf(), getResult());
}
OpFoldResult AtenRepeatOp::fold() {
  return foldSameType(getSelf(), getResult());
}
// A slice's step is positive, so a slice as large as its operand is the whole
// operand.
OpFoldResult AtenSliceTensorOp::fold() {
  return foldSameType(getSelf(), getResult());
}
// Requires zero padding, because equal types don't suffice: negative padding on
// one side can cancel padding on the other.
OpFoldResult AtenConstantPadNdOp::fold() {
  auto pads = getPad().getDefiningOp<PrimListConstructOp>();
  bool isZero = pads && llvm::all_of(pads.getElements(), [](Value pad) {
                  return matchPattern(pad, m_Zero());
                });
  return isZero ? foldSameType(getSelf(), getResult()) : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// Permutations
//===----------------------------------------------------------------------===//

static bool isIdentity(ArrayRef<int64_t> order) {
  return llvm::equal(order, llvm::seq<int64_t>(0, order.size()));
}

/// Folds an identity permutation to its operand, and a permutation of a
/// permutation of x to x if the two are inverses.
static OpFoldResult foldPermutation(Operation *op) {
  std::optional<Permutation> outer = permutationOf(op);
  if (!outer)
    return {};
  if (isIdentity(outer->order))
    return outer->self;
  auto inner = permutationOf(outer->self.getDefiningOp());
  if (!inner)
    return {};
  for (int64_t &dim : outer->order)
    dim = inner->order[dim];
  return isIdentity(outer->order) ? inner->self : Value();
}

OpFoldResult AtenPermuteOp::fold() { return foldPermutation(*this); }
OpFoldResult AtenTransposeIntOp::fold() { return foldPermutation(*this); }
OpFoldResult AtenTOp::fold() { return foldPermutation(*this); }

namespace {
/// Combines two successive permutations into one.
template <typename Op> struct ComposePermutations : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto outer = permutationOf(op);
    auto inner = permutationOf(op.getSelf().getDefiningOp());
    if (!outer || !inner)
      return failure();
    auto dims = llvm::map_to_vector(
        outer->order, [&](int64_t dim) { return inner->order[dim]; });
    Value list = intList(rewriter, op.getLoc(), dims);
    rewriter.replaceOpWithNewOp<AtenPermuteOp>(op, op.getType(),
                                               ValueRange{inner->self, list});
    return success();
  }
};
} // namespace

void AtenPermuteOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                MLIRContext *context) {
  patterns.add<ComposePermutations<AtenPermuteOp>>(context);
}
void AtenTransposeIntOp::getCanonicalizationPatterns(
    RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ComposePermutations<AtenTransposeIntOp>>(context);
}
void AtenTOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<ComposePermutations<AtenTOp>>(context);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

template <typename Op> static LogicalResult verifyView(Op op) {
  auto self = tensorType(op.getSelf()), result = tensorType(op.getResult());
  if (!self.isStatic() || !result.isStatic() ||
      self.getNumElements() == result.getNumElements())
    return success();
  return op.emitOpError() << "a view has as many elements as its operand; got "
                          << Type(self) << " and " << Type(result);
}

LogicalResult AtenViewOp::verify() { return verifyView(*this); }
LogicalResult Aten_UnsafeViewOp::verify() { return verifyView(*this); }

/// The tensor of which `value` is a view; null if it isn't a view.
static Value viewedTensor(Value value) {
  if (auto view = value.getDefiningOp<AtenViewOp>())
    return view.getSelf();
  if (auto view = value.getDefiningOp<Aten_UnsafeViewOp>())
    return view.getSelf();
  return {};
}

namespace {
/// Replaces a view of a view by a view of the original tensor.
template <typename Op> struct ViewOfView : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    Value viewed = viewedTensor(op.getSelf());
    if (!viewed)
      return failure();
    rewriter.replaceOpWithNewOp<Op>(op, op.getType(),
                                    ValueRange{viewed, op.getSize()});
    return success();
  }
};
} // namespace

void AtenViewOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                             MLIRContext *context) {
  patterns.add<ViewOfView<AtenViewOp>>(context);
}
void Aten_UnsafeViewOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                    MLIRContext *context) {
  patterns.add<ViewOfView<Aten_UnsafeViewOp>>(context);
}

//===----------------------------------------------------------------------===//
// Parts of expanded tensors
//===----------------------------------------------------------------------===//

namespace {
/// Replaces a slice or `select` of an expanded tensor by an expansion of a part
/// of the original tensor, so that the program never computes the expanded
/// tensor, which may be larger than the memory.
template <typename Op> struct PartOfExpanded : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto expand = op.getSelf().template getDefiningOp<AtenExpandOp>();
    if (!expand)
      return failure();
    ValueTensorType source = tensorType(expand.getSelf());
    ValueTensorType whole = tensorType(expand.getResult());
    ValueTensorType result = tensorType(op.getResult());
    if (!source.isStatic() || !whole.isStatic() || !result.isStatic())
      return failure();
    std::optional<int64_t> dim = constantDim(op.getDim(), whole.getRank());
    if (!dim)
      return failure();
    int64_t sourceDim = *dim - (whole.getRank() - source.getRank());
    Value part = partOf(rewriter, op, expand.getSelf(), sourceDim, *dim);
    Value sizes = intList(rewriter, op.getLoc(), result.getSizes());
    rewriter.replaceOpWithNewOp<AtenExpandOp>(
        op, result, ValueRange{part, sizes, expand.getImplicit()});
    return success();
  }

private:
  /// Returns the elements of `source` that belong to the slice. `dim` is the
  /// dim of `source` that the op slices, negative if the expansion adds it;
  /// `expandedDim` is that of the expanded tensor.
  static Value partOf(PatternRewriter &rewriter, Op op, Value source,
                      int64_t dim, int64_t expandedDim) {
    constexpr bool isSelect = std::is_same_v<Op, AtenSelectIntOp>;
    ValueTensorType type = tensorType(source);
    if (dim < 0 || (!isSelect && type.getSizes()[dim] == 1))
      return source;
    SmallVector<int64_t> sizes(type.getSizes());
    bool isRepeated = sizes[dim] == 1;
    if (isSelect)
      sizes.erase(sizes.begin() + dim);
    else
      sizes[dim] = tensorType(op.getResult()).getSizes()[expandedDim];
    Type partType =
        ValueTensorType::get(op.getContext(), sizes, type.getDtype());
    if (isRepeated)
      return AtenViewOp::create(
                 rewriter, op.getLoc(), partType,
                 ValueRange{source, intList(rewriter, op.getLoc(), sizes)})
          ->getResult(0);
    SmallVector<Value> operands(op->getOperands());
    operands[0] = source;
    operands[1] = intConstant(rewriter, op.getLoc(), dim);
    return Op::create(rewriter, op.getLoc(), partType, operands)->getResult(0);
  }
};
} // namespace

void AtenSliceTensorOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                    MLIRContext *context) {
  patterns.add<PartOfExpanded<AtenSliceTensorOp>>(context);
}
void AtenSelectIntOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                  MLIRContext *context) {
  patterns.add<PartOfExpanded<AtenSelectIntOp>>(context);
}
