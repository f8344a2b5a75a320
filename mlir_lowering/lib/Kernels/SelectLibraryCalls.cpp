//===- SelectLibraryCalls.cpp - Library calls for matrix products ---------===//

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_SELECTLIBRARYCALLS
#include "torch_ltc/Kernels/Passes.h.inc"

namespace {

/// An operand of a matrix product: the tensor from which copies (transposes,
/// broadcasts) make it, and whether it is transposed.
struct MatrixOperand {
  Value value;
  bool transposed = false;
};

/// If `value` is only a rearrangement of another tensor (a transpose or a
/// broadcast), returns that tensor and the map from result to source
/// coordinates.
std::optional<std::pair<Value, AffineMap>> asRearrangement(Value value) {
  Operation *def = value.getDefiningOp();
  if (auto transpose = dyn_cast_if_present<linalg::TransposeOp>(def)) {
    // Result dimension i is source dimension permutation[i].
    AffineMap map = AffineMap::getPermutationMap(transpose.getPermutation(),
                                                 def->getContext());
    return std::pair(transpose.getInput(), inversePermutation(map));
  }
  auto generic = dyn_cast_if_present<linalg::GenericOp>(def);
  if (!generic || generic.getNumDpsInputs() != 1 ||
      generic.getNumDpsInits() != 1 ||
      generic.getNumParallelLoops() != generic.getNumLoops())
    return std::nullopt;
  auto yield = cast<linalg::YieldOp>(generic.getBody()->getTerminator());
  if (yield.getOperand(0) != generic.getRegionInputArgs()[0])
    return std::nullopt;
  AffineMap in = generic.getIndexingMapsArray()[0];
  AffineMap out = generic.getIndexingMapsArray()[1];
  if (!out.isIdentity() || !in.isProjectedPermutation() ||
      !isa<RankedTensorType>(generic.getDpsInputs()[0].getType()))
    return std::nullopt;
  return std::pair(generic.getDpsInputs()[0], in);
}

/// Looks through transposes of the last two dimensions and broadcasts along
/// the batch.
MatrixOperand lookThroughRearrangements(MatrixOperand operand) {
  while (auto source = asRearrangement(operand.value)) {
    AffineMap map = source->second;
    unsigned rank = map.getNumDims(), results = map.getNumResults();
    if (results < 2 || rank < 2)
      break;
    // Leading coordinates must be the batch itself or absent.
    if (results == 3 && map.getDimPosition(0) != 0)
      break;
    if (results > 3 || (results == 2 && rank > 3))
      break;
    unsigned row = map.getDimPosition(results - 2);
    unsigned column = map.getDimPosition(results - 1);
    if (row == rank - 2 && column == rank - 1)
      operand.value = source->first;
    else if (row == rank - 1 && column == rank - 2)
      operand = {source->first, !operand.transposed};
    else
      break;
  }
  return operand;
}

bool isZeroFill(Value value) {
  auto fill = value.getDefiningOp<linalg::FillOp>();
  return fill && (matchPattern(fill.value(), m_AnyZeroFloat()) ||
                  matchPattern(fill.value(), m_Zero()));
}

/// Whether the map of an operand ([batch,] row, column) exchanges rows and
/// columns relative to (`row`, `column`); nullopt if the map has any other
/// form.
std::optional<bool> isExchanged(AffineMap map, unsigned batchRank, unsigned row,
                                unsigned column) {
  if (!map.isProjectedPermutation() || map.getNumResults() != batchRank + 2 ||
      (batchRank && map.getDimPosition(0) != 0))
    return std::nullopt;
  unsigned first = map.getDimPosition(batchRank);
  unsigned second = map.getDimPosition(batchRank + 1);
  if (first == row && second == column)
    return false;
  if (first == column && second == row)
    return true;
  return std::nullopt;
}

/// Creates `product` + `init`, elementwise.
Value addInitialValue(OpBuilder &builder, Location loc, Value product,
                      Value init) {
  auto type = cast<RankedTensorType>(product.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  return linalg::GenericOp::create(
             builder, loc, type, ValueRange{product, init}, empty,
             ArrayRef{identity, identity, identity}, loops,
             [](OpBuilder &b, Location l, ValueRange args) {
               Value sum = isa<FloatType>(args[0].getType())
                               ? arith::AddFOp::create(b, l, args[0], args[1])
                                     .getResult()
                               : arith::AddIOp::create(b, l, args[0], args[1])
                                     .getResult();
               linalg::YieldOp::create(b, l, sum);
             })
      .getResult(0);
}

void selectMatmul(linalg::LinalgOp op) {
  unsigned batchRank = isa<linalg::BatchMatmulOp>(op.getOperation()) ? 1 : 0;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  Value left = op.getDpsInputs()[0], right = op.getDpsInputs()[1];
  Value init = op.getDpsInits()[0];
  if (!type || getElementTypeOrSelf(left) != type.getElementType() ||
      getElementTypeOrSelf(right) != type.getElementType() ||
      type.getElementTypeBitWidth() < 8)
    return;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  unsigned m = batchRank, n = batchRank + 1, k = batchRank + 2;
  auto leftExchanged = isExchanged(maps[0], batchRank, m, k);
  auto rightExchanged = isExchanged(maps[1], batchRank, k, n);
  if (!leftExchanged || !rightExchanged ||
      isExchanged(maps[2], batchRank, m, n) != false)
    return;
  MatrixOperand a = lookThroughRearrangements({left, *leftExchanged});
  MatrixOperand b = lookThroughRearrangements({right, *rightExchanged});

  OpBuilder builder(op);
  Value product =
      ltc::MatmulOp::create(builder, op.getLoc(), type, a.value, b.value,
                            /*bias=*/Value(), a.transposed, b.transposed);
  if (!isZeroFill(init))
    product = addInitialValue(builder, op.getLoc(), product, init);
  op->getResult(0).replaceAllUsesWith(product);
  op->erase();
}

/// Replaces the transpose of a product that has no other users:
/// (a * b)^T becomes b^T * a^T.
void absorbTranspose(Operation *op) {
  if (op->getNumResults() != 1 ||
      !isa<RankedTensorType>(op->getResult(0).getType()))
    return;
  auto source = asRearrangement(op->getResult(0));
  if (!source || source->second.getNumDims() != 2 ||
      source->second.getNumResults() != 2 || source->second.isIdentity())
    return;
  auto product = source->first.getDefiningOp<ltc::MatmulOp>();
  if (!product || !product->hasOneUse() || product.getBias())
    return;
  OpBuilder builder(op);
  auto transposed = ltc::MatmulOp::create(
      builder, product.getLoc(), op->getResult(0).getType(), product.getB(),
      product.getA(), /*bias=*/Value(), !product.getTransposeB(),
      !product.getTransposeA());
  op->getResult(0).replaceAllUsesWith(transposed);
  op->erase();
  product.erase();
}

class SelectLibraryCalls
    : public impl::SelectLibraryCallsBase<SelectLibraryCalls> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> program = findProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(program->getBody().front()))
      if (isa<linalg::MatmulOp, linalg::BatchMatmulOp>(op))
        selectMatmul(cast<linalg::LinalgOp>(op));
    // Visit ops in program order, so that nested transposes are absorbed one
    // after the other.
    for (Operation &op : llvm::make_early_inc_range(program->getBody().front()))
      absorbTranspose(&op);
  }
};

} // namespace
} // namespace mlir::torch_ltc
