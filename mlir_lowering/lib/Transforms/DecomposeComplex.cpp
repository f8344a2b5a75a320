//===- DecomposeComplex.cpp - Ops on complex numbers as ops on pairs ------===//
//
// A tensor of complex numbers is computed as a tensor of floats with an
// additional last dim: the real and the imaginary part. Ops that move elements,
// additions, and products with real numbers are ops on the pairs, so that they
// fuse with the ops around them and views aren't copied. PyTorch's kernels
// compute ops without a pattern here (Fourier transforms, products, conjugates,
// ...), because a loop over pairs isn't faster.
//
//===----------------------------------------------------------------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/Permutations.h"
#include "torch_ltc/Dialect/Torch/ReshapeOps.h"
#include "torch_ltc/Dialect/Torch/TorchOps_constructor.h"
#include "torch_ltc/Dialect/Torch/TorchOps_data_movement.h"
#include "torch_ltc/Dialect/Torch/TorchOps_elementwise.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

/// The sizes of the pairs of a complex tensor of the sizes `sizes`.
static SmallVector<int64_t> pairSizes(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> result(sizes);
  result.push_back(2);
  return result;
}

/// Replaces the op by the complex numbers whose parts are `pairs`.
static LogicalResult replaceWithPairs(FormulaBuilder &b, Value pairs) {
  return b.replaceWith({b.viewAsComplex(pairs)});
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

template <typename OpTy>
static LogicalResult decomposeReshape(OpTy op, FormulaBuilder &b) {
  Value pairs = b.viewAsReal(op.getSelf());
  return replaceWithPairs(b, b.view(pairs, pairSizes(b.resultSizes())));
}

template <typename OpTy>
static LogicalResult decomposePermutation(OpTy op, FormulaBuilder &b) {
  std::optional<Permutation> permutation = permutationOf(op);
  if (!permutation)
    return failure();
  SmallVector<int64_t> &order = permutation->order;
  order.push_back(order.size());
  return replaceWithPairs(b, b.permute(b.viewAsReal(op.getSelf()), order));
}

static LogicalResult decomposeExpand(AtenExpandOp op, FormulaBuilder &b) {
  SmallVector<int64_t> operand(b.sizes(op.getSelf()));
  while (operand.size() < b.resultSizes().size())
    operand.insert(operand.begin(), 1);
  Value pairs = b.view(b.viewAsReal(op.getSelf()), pairSizes(operand));
  return replaceWithPairs(b, b.expand(pairs, pairSizes(b.resultSizes())));
}

//===----------------------------------------------------------------------===//
// The same op on pairs
//===----------------------------------------------------------------------===//

namespace {
/// Repeats an op on pairs: its dims keep their positions.
template <typename OpTy> class SameOpOnPairs : public OpRewritePattern<OpTy> {
public:
  /// `dims` is the position of a dim or of a list of dims, `sizes` that of a
  /// list of sizes, `factor` that of a number that multiplies an operand; -1 if
  /// there is none.
  SameOpOnPairs(MLIRContext *context, int dims, int sizes, int factor = -1)
      : OpRewritePattern<OpTy>(context), dims(dims), sizes(sizes),
        factor(factor) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    // A complex number is a tensor.
    bool isFactorReal =
        factor < 0 || !isTensorType(op->getOperand(factor).getType());
    if (!isComplexTensor(op.getType()) || !areDimsFromTheFront(op) ||
        !isFactorReal || !llvm::all_of(op->getOperands(), isWithoutRealTensor))
      return failure();
    FormulaBuilder b(rewriter, op);
    SmallVector<Value> operands;
    for (auto [position, operand] : llvm::enumerate(op->getOperands()))
      operands.push_back(int(position) == sizes
                             ? b.list(pairSizes(b.integers(operand)))
                             : pairsOf(b, operand));
    Type part = cast<ComplexType>(b.resultDtype()).getElementType();
    auto type = ValueTensorType::get(op->getContext(),
                                     pairSizes(b.resultSizes()), part);
    Value pairs =
        OpTy::create(rewriter, op->getLoc(), type, operands).getResult();
    return replaceWithPairs(b, pairs);
  }

private:
  /// Type promotion of real operands is left to PyTorch.
  static bool isWithoutRealTensor(Value operand) {
    auto isReal = [](Type type) {
      return isTensorType(type) && !isComplexTensor(type);
    };
    auto list = operand.getDefiningOp<PrimListConstructOp>();
    return list ? llvm::none_of(list.getElements().getTypes(), isReal)
                : !isReal(operand.getType());
  }

  static Value pairsOf(FormulaBuilder &b, Value operand) {
    if (isTensorType(operand.getType()))
      return b.viewAsReal(operand);
    auto list = operand.getDefiningOp<PrimListConstructOp>();
    if (!list || !llvm::any_of(list.getElements().getTypes(), isTensorType))
      return operand;
    return b.listOf(llvm::map_to_vector(list.getElements(), [&](Value tensor) {
      return b.viewAsReal(tensor);
    }));
  }

  bool areDimsFromTheFront(OpTy op) const {
    if (dims < 0)
      return true;
    auto isFromFront = [](Value dim) {
      auto constant = dim.getDefiningOp<ConstantIntOp>();
      return constant && constant.getValueAttr().getInt() >= 0;
    };
    Value operand = op->getOperand(dims);
    auto list = operand.getDefiningOp<PrimListConstructOp>();
    if (!list)
      return isFromFront(operand);
    return !list.getElements().empty() &&
           llvm::all_of(list.getElements(), isFromFront);
  }

  int dims, sizes, factor;
};

/// Rewrites ops on complex tensors with a function, which is tried before
/// `SameOpOnPairs`. If an operand isn't known, PyTorch's kernel computes the
/// op.
template <typename OpTy> class ComplexPattern : public OpRewritePattern<OpTy> {
public:
  using Function = LogicalResult (*)(OpTy, FormulaBuilder &);

  ComplexPattern(MLIRContext *context, Function function)
      : OpRewritePattern<OpTy>(context, /*benefit=*/2), function(function) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    FormulaBuilder b(rewriter, op);
    if (!hasComplexTensor(op) || !b.areOperandsKnown())
      return failure();
    return function(op, b);
  }

private:
  Function function;
};
} // namespace

//===----------------------------------------------------------------------===//
// Slices of the last dim
//===----------------------------------------------------------------------===//

namespace {
/// A slice of step 1 of the last dim of a complex tensor. It is a slice of all
/// parts in one dim, so that the innermost loop is longer than a pair.
struct LastSlice {
  int64_t dim, start, end; // in parts

  /// None if the op slices differently. The bounds are none or constants.
  static std::optional<LastSlice> of(ArrayRef<int64_t> sizes, Value dim,
                                     Value start, Value end, Value step) {
    int64_t last = int64_t(sizes.size()) - 1;
    if (FormulaBuilder::dimension(dim, sizes.size()) != last ||
        FormulaBuilder::integer(step) != 1)
      return std::nullopt;
    int64_t size = sizes[last];
    auto clamped = [&](Value bound, int64_t none) {
      if (FormulaBuilder::isNone(bound))
        return none;
      int64_t index = FormulaBuilder::integer(bound);
      return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
    };
    int64_t from = clamped(start, 0);
    int64_t to = std::max(clamped(end, size), from);
    return LastSlice{last, 2 * from, 2 * to};
  }

  /// The pairs of the last dim as one dim.
  static Value flatten(FormulaBuilder &b, Value complex) {
    SmallVector<int64_t> sizes(b.sizes(complex));
    sizes.back() *= 2;
    return b.view(b.viewAsReal(complex), sizes);
  }

  /// Replaces the op by the complex numbers of such a tensor.
  static LogicalResult replaceWith(FormulaBuilder &b, Value flat) {
    return replaceWithPairs(b, b.view(flat, pairSizes(b.resultSizes())));
  }
};
} // namespace

static LogicalResult decomposeSlice(AtenSliceTensorOp op, FormulaBuilder &b) {
  auto slice = LastSlice::of(b.sizes(op.getSelf()), op.getDim(), op.getStart(),
                             op.getEnd(), op.getStep());
  if (!slice)
    return failure();
  Value flat = LastSlice::flatten(b, op.getSelf());
  return LastSlice::replaceWith(
      b, b.slice(flat, slice->dim, slice->start, slice->end));
}

static LogicalResult decomposeSliceScatter(AtenSliceScatterOp op,
                                           FormulaBuilder &b) {
  auto slice = LastSlice::of(b.sizes(op.getSelf()), op.getDim(), op.getStart(),
                             op.getEnd(), op.getStep());
  if (!slice || !isComplexTensor(op.getSrc().getType()))
    return failure();
  return LastSlice::replaceWith(
      b, b.sliceScatter(LastSlice::flatten(b, op.getSelf()),
                        LastSlice::flatten(b, op.getSrc()), slice->dim,
                        slice->start, slice->end));
}

static LogicalResult decomposeSliceBackward(AtenSliceBackwardOp op,
                                            FormulaBuilder &b) {
  auto slice = LastSlice::of(b.resultSizes(), op.getDim(), op.getStart(),
                             op.getEnd(), op.getStep());
  if (!slice)
    return failure();
  Value grad = LastSlice::flatten(b, op.getGradOutput());
  SmallVector<int64_t> sizes(b.resultSizes());
  sizes.back() *= 2;
  return LastSlice::replaceWith(
      b, b.sliceBackward(grad, sizes, slice->dim, slice->start, slice->end));
}

//===----------------------------------------------------------------------===//
// Zeros, products with real numbers, copies
//===----------------------------------------------------------------------===//

template <typename OpTy>
static LogicalResult decomposeZeros(OpTy, FormulaBuilder &b) {
  auto complex = dyn_cast<ComplexType>(b.resultDtype());
  if (!complex) // zeros_like with a dtype
    return b.replaceWith({b.zeros(b.resultSizes(), b.resultDtype())});
  return replaceWithPairs(
      b, b.zeros(pairSizes(b.resultSizes()), complex.getElementType()));
}

/// The product with a real number, which may be a tensor of rank 0.
static LogicalResult decomposeMul(AtenMulTensorOp op, FormulaBuilder &b) {
  Value numbers = op.getSelf(), scale = op.getOther();
  if (!isComplexTensor(numbers.getType()))
    std::swap(numbers, scale);
  if (isComplexTensor(scale.getType()) || b.rank(scale) != 0 ||
      b.dtype(numbers) != b.resultDtype())
    return failure();
  Value pairs = b.viewAsReal(numbers);
  return replaceWithPairs(b, b.mul(pairs, b.cast(scale, b.dtype(pairs))));
}

static LogicalResult decomposeClone(AtenCloneOp op, FormulaBuilder &b) {
  return b.replaceWith({op.getSelf()});
}

void mlir::torch_ltc::populateComplexDecompositionPatterns(
    RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  auto add =
      [&]<typename OpTy>(LogicalResult (*function)(OpTy, FormulaBuilder &)) {
        patterns.add<ComplexPattern<OpTy>>(context, function);
      };
  forEachReshapeOp([&]<typename OpTy>() { add(decomposeReshape<OpTy>); });
  add(decomposePermutation<AtenPermuteOp>);
  add(decomposePermutation<AtenTransposeIntOp>);
  add(decomposePermutation<AtenTOp>);
  add(decomposeExpand);
  add(decomposeClone);
  add(decomposeSlice);
  add(decomposeSliceScatter);
  add(decomposeSliceBackward);
  add(decomposeZeros<AtenZerosOp>);
  add(decomposeZeros<AtenZerosLikeOp>);
  add(decomposeZeros<AtenNewZerosOp>);
  add(decomposeMul);

  patterns.add<SameOpOnPairs<AtenSelectIntOp>>(context, /*dims=*/1, -1);
  patterns.add<SameOpOnPairs<AtenSliceTensorOp>>(context, /*dims=*/1, -1);
  patterns.add<SameOpOnPairs<AtenSelectScatterOp>>(context, /*dims=*/2, -1);
  patterns.add<SameOpOnPairs<AtenSliceScatterOp>>(context, /*dims=*/2, -1);
  patterns.add<SameOpOnPairs<AtenSelectBackwardOp>>(context, /*dims=*/2,
                                                    /*sizes=*/1);
  patterns.add<SameOpOnPairs<AtenSliceBackwardOp>>(context, /*dims=*/2,
                                                   /*sizes=*/1);
  patterns.add<SameOpOnPairs<AtenCatOp>>(context, /*dims=*/1, -1);
  patterns.add<SameOpOnPairs<AtenFlipOp>>(context, /*dims=*/1, -1);
  patterns.add<SameOpOnPairs<AtenRollOp>>(context, /*dims=*/2, -1);
  patterns.add<SameOpOnPairs<AtenNegOp>>(context, -1, -1);
  patterns.add<SameOpOnPairs<AtenAddTensorOp>>(context, -1, -1,
                                               /*factor=*/2);
  patterns.add<SameOpOnPairs<AtenSubTensorOp>>(context, -1, -1,
                                               /*factor=*/2);
}
