//===- ConvertTosaExtremes.cpp - Maxima and minima of floats --------------===//

#include "torch_ltc/Conversion/TorchToTosa/Passes.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_CONVERTTOSAEXTREMESPASS
#include "torch_ltc/Conversion/TorchToTosa/Passes.h.inc"
} // namespace mlir::torch_ltc

using namespace mlir;

/// Replaces the op by a linalg.reduce that starts at an infinity, and a
/// tosa.reshape that restores the dimension that TOSA keeps.
template <typename OpTy, typename CombineOp>
static void convert(OpTy op, bool isMaximum) {
  auto type = cast<RankedTensorType>(op.getType());
  auto element = dyn_cast<FloatType>(type.getElementType());
  if (!element || op.getNanMode() != tosa::NanPropagationMode::PROPAGATE)
    return;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<int64_t> sizes(type.getShape());
  sizes.erase(sizes.begin() + op.getAxis());
  Value infinity = arith::ConstantOp::create(
      builder, loc,
      builder.getFloatAttr(element, APFloat::getInf(element.getFloatSemantics(),
                                                    /*Negative=*/isMaximum)));
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, element);
  Value start =
      linalg::FillOp::create(builder, loc, infinity, empty).getResult(0);
  auto reduce = linalg::ReduceOp::create(
      builder, loc, op.getInput(), start, SmallVector<int64_t>{op.getAxis()},
      [](OpBuilder &nested, Location loc, ValueRange values) {
        Value combined = CombineOp::create(nested, loc, values[0], values[1]);
        linalg::YieldOp::create(nested, loc, combined);
      });
  auto shapeType =
      RankedTensorType::get(type.getRank(), builder.getIndexType());
  Value shape = tosa::ConstShapeOp::create(
      builder, loc, tosa::shapeType::get(builder.getContext(), type.getRank()),
      DenseIntElementsAttr::get(shapeType, type.getShape()));
  op.replaceAllUsesWith(
      tosa::ReshapeOp::create(builder, loc, type, reduce.getResult(0), shape)
          .getResult());
  op.erase();
}

namespace {
struct ConvertTosaExtremesPass
    : torch_ltc::impl::ConvertTosaExtremesPassBase<ConvertTosaExtremesPass> {
  void runOnOperation() override {
    getOperation().walk([](tosa::ReduceMaxOp op) {
      convert<tosa::ReduceMaxOp, arith::MaximumFOp>(op, /*isMaximum=*/true);
    });
    getOperation().walk([](tosa::ReduceMinOp op) {
      convert<tosa::ReduceMinOp, arith::MinimumFOp>(op, /*isMaximum=*/false);
    });
  }
};
} // namespace
