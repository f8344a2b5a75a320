//===- DataMovementFolders.cpp - Views that change nothing ----------------===//
//
// Tensors are values in row-major order, so a view or slice whose result has
// the type of its operand equals the operand.
//
//===----------------------------------------------------------------------===//

#include "torch_ltc/Dialect/Torch/TorchOps_data_movement.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::torch_ltc::torch;

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

static std::optional<int64_t> constantInt(Value value) {
  if (auto constant = value.getDefiningOp<ConstantIntOp>())
    return constant.getValueAttr().getInt();
  return std::nullopt;
}

namespace {
/// Dimension i of the result is dimension `order[i]` of `self`.
struct Permutation {
  Value self;
  SmallVector<int64_t> order;
};
} // namespace

/// Returns nullopt if `op` is null or isn't a constant permutation.
static std::optional<Permutation> permutationOf(Operation *op) {
  if (!op)
    return std::nullopt;
  Value self = TypeSwitch<Operation *, Value>(op)
                   .Case<AtenPermuteOp, AtenTransposeIntOp, AtenTOp>(
                       [](auto permutation) { return permutation.getSelf(); })
                   .Default(Value());
  if (!self || !tensorType(self).isStatic())
    return std::nullopt;
  int64_t rank = tensorType(self).getRank();
  auto wrap = [&](int64_t dim) { return dim < 0 ? dim + rank : dim; };
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (auto permute = dyn_cast<AtenPermuteOp>(op)) {
    auto dims = permute.getDims().getDefiningOp<PrimListConstructOp>();
    if (!dims || static_cast<int64_t>(dims.getElements().size()) != rank)
      return std::nullopt;
    for (auto [position, element] : llvm::enumerate(dims.getElements())) {
      std::optional<int64_t> dim = constantInt(element);
      if (!dim)
        return std::nullopt;
      order[position] = wrap(*dim);
    }
  } else if (auto transpose = dyn_cast<AtenTransposeIntOp>(op)) {
    std::optional<int64_t> first = constantInt(transpose.getDim0());
    std::optional<int64_t> second = constantInt(transpose.getDim1());
    if (!first || !second)
      return std::nullopt;
    if (rank > 0)
      std::swap(order[wrap(*first)], order[wrap(*second)]);
  } else if (rank == 2) {
    std::swap(order[0], order[1]);
  }
  return Permutation{self, order};
}

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
    MLIRContext *context = op.getContext();
    Type intType = IntType::get(context);
    SmallVector<Value> dims;
    for (int64_t dim : outer->order)
      dims.push_back(
          ConstantIntOp::create(rewriter, op.getLoc(), intType,
                                rewriter.getI64IntegerAttr(inner->order[dim])));
    Value list = PrimListConstructOp::create(
        rewriter, op.getLoc(), ListType::get(context, intType), dims);
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
