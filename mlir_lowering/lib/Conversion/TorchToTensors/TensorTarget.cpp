//===- TensorTarget.cpp - A dialect of whole-tensor ops -------------------===//

#include "TensorTarget.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlir::torch_ltc;

int64_t ConvolutionWindow::resultSize(int64_t dim, int64_t input,
                                      int64_t weight) const {
  int64_t dilated = (input - 1) * inputDilation[dim] + 1;
  int64_t window = (weight - 1) * weightDilation[dim] + 1;
  return (dilated + padLow[dim] + padHigh[dim] - window) / stride[dim] + 1;
}

Value TensorTarget::splat(ArrayRef<int64_t> sizes, TypedAttr scalar) {
  auto type = RankedTensorType::get(sizes, scalar.getType());
  return constant(DenseElementsAttr::get(type, scalar));
}

Value TensorTarget::zeros(ArrayRef<int64_t> sizes, Type elementType) {
  return splat(sizes, cast<TypedAttr>(builder.getZeroAttr(elementType)));
}

Value TensorTarget::reject(const Twine &reason, Type type) {
  if (failure.empty())
    failure = reason.str();
  return UnrealizedConversionCastOp::create(builder, loc, type, ValueRange())
      .getResult(0);
}

Value TensorTarget::reject(Operation *op, Type type) {
  return reject(
      getName() + " has no op for " + op->getName().getStringRef() + " of " +
          (isa<FloatType>(op->getOperand(0).getType()) ? "floats" : "integers"),
      type);
}

std::optional<arith::CmpFPredicate>
torch_ltc::negatedUnordered(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::ULT:
    return P::OGE;
  case P::ULE:
    return P::OGT;
  case P::UGT:
    return P::OLE;
  case P::UGE:
    return P::OLT;
  case P::UNE:
    return P::OEQ;
  case P::ORD:
    return P::UNO;
  default:
    return std::nullopt;
  }
}

arith::CmpIPredicate
torch_ltc::signedPredicate(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::ult:
    return P::slt;
  case P::ule:
    return P::sle;
  case P::ugt:
    return P::sgt;
  case P::uge:
    return P::sge;
  default:
    return predicate;
  }
}

SmallVector<int64_t> torch_ltc::broadcastSizes(ValueRange tensors) {
  SmallVector<int64_t> sizes(TensorTarget::sizesOf(tensors[0]));
  for (Value tensor : tensors.drop_front())
    for (auto [size, other] : llvm::zip(sizes, TensorTarget::sizesOf(tensor)))
      if (size == 1)
        size = other;
  return sizes;
}
