//===- StablehloElementwise.cpp - Scalar code as StableHLO ops ------------===//

#include "StablehloTarget.h"

#include "torch_ltc/Dialect/Stablehlo/StablehloDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numbers>

using namespace mlir;
using namespace mlir::torch_ltc;
using stablehlo::ComparisonDirection;

/// Expands functions that StableHLO lacks: cosh, and erf, erfc, asin and acos
/// of float32, for which MLIR has approximations.
LogicalResult StablehloTarget::expandScalarCode(Operation *body) {
  RewritePatternSet patterns(builder.getContext());
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return name == "math.erf" || name == "math.erfc" || name == "math.asin" ||
           name == "math.acos";
  });
  math::populateExpansionPatterns(patterns, {"cosh"});
  return applyPatternsGreedily(body, std::move(patterns));
}

Value StablehloTarget::splatLike(Value tensor, double value) {
  Type element = typeOf(tensor).getElementType();
  return splat(sizesOf(tensor), builder.getFloatAttr(element, value));
}

//===----------------------------------------------------------------------===//
// Comparisons and casts
//===----------------------------------------------------------------------===//

static Value compare(OpBuilder &builder, Location loc, Value a, Value b,
                     ComparisonDirection direction) {
  auto type = TensorTarget::typeOf(a).clone(builder.getI1Type());
  return stablehlo::CompareOp::create(builder, loc, type, a, b, direction);
}

Value StablehloTarget::compareFloats(Operation *op,
                                     arith::CmpFPredicate predicate,
                                     ArrayRef<Value> operands) {
  Value a = operands[0], b = operands[1];
  // For NaNs, StableHLO's NE is true and its other comparisons are false.
  auto negated = negatedUnordered(predicate);
  if (negated && predicate != arith::CmpFPredicate::UNE) {
    Value opposite = compareFloats(op, *negated, operands);
    return stablehlo::NotOp::create(builder, loc, opposite.getType(), opposite);
  }
  auto make = [&](ComparisonDirection direction) {
    return compare(builder, loc, a, b, direction);
  };
  switch (predicate) {
  case arith::CmpFPredicate::OEQ:
    return make(ComparisonDirection::EQ);
  case arith::CmpFPredicate::UNE:
    return make(ComparisonDirection::NE);
  case arith::CmpFPredicate::OGT:
    return make(ComparisonDirection::GT);
  case arith::CmpFPredicate::OGE:
    return make(ComparisonDirection::GE);
  case arith::CmpFPredicate::OLT:
    return make(ComparisonDirection::LT);
  case arith::CmpFPredicate::OLE:
    return make(ComparisonDirection::LE);
  case arith::CmpFPredicate::UNO: {
    Value aIsNan = compare(builder, loc, a, a, ComparisonDirection::NE);
    Value bIsNan = compare(builder, loc, b, b, ComparisonDirection::NE);
    return stablehlo::OrOp::create(builder, loc, aIsNan.getType(), aIsNan,
                                   bIsNan);
  }
  default:
    return reject(op, typeOf(a).clone(builder.getI1Type()));
  }
}

Value StablehloTarget::compareIntegers(Operation *op,
                                       ArrayRef<Value> operands) {
  Value a = operands[0], b = operands[1];
  auto make = [&](ComparisonDirection direction) {
    return compare(builder, loc, a, b, direction);
  };
  Type element = typeOf(a).getElementType();
  arith::CmpIPredicate predicate = cast<arith::CmpIOp>(op).getPredicate();
  // Adding half the range to both operands turns an unsigned comparison into a
  // signed one. For bools, this isn't needed: StableHLO defines their order.
  if (predicate >= arith::CmpIPredicate::ult && !element.isInteger(1)) {
    Value half = splat(
        sizesOf(a),
        builder.getIntegerAttr(element, APInt::getSignedMinValue(
                                            element.getIntOrFloatBitWidth())));
    a = stablehlo::AddOp::create(builder, loc, a.getType(), a, half);
    b = stablehlo::AddOp::create(builder, loc, b.getType(), b, half);
    predicate = signedPredicate(predicate);
  }
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return make(ComparisonDirection::EQ);
  case arith::CmpIPredicate::ne:
    return make(ComparisonDirection::NE);
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    return make(ComparisonDirection::GT);
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    return make(ComparisonDirection::GE);
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    return make(ComparisonDirection::LT);
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    return make(ComparisonDirection::LE);
  }
  llvm_unreachable("all predicates are handled");
}

Value StablehloTarget::convert(Operation *op, Value operand) {
  RankedTensorType from = typeOf(operand);
  auto type = from.clone(op->getResult(0).getType());
  bool isUnsigned = isa<arith::UIToFPOp, arith::ExtUIOp>(op);
  if (isUnsigned && !from.getElementType().isInteger(1))
    return reject(op, type);
  if (from == type)
    return operand;
  return stablehlo::ConvertOp::create(builder, loc, type, operand);
}

//===----------------------------------------------------------------------===//
// All scalar ops
//===----------------------------------------------------------------------===//

template <typename OpTy> Value StablehloTarget::unary(Value a) {
  return OpTy::create(builder, loc, a.getType(), a);
}

template <typename OpTy> Value StablehloTarget::binary(Value a, Value b) {
  return OpTy::create(builder, loc, a.getType(), a, b);
}

Value StablehloTarget::select(Value condition, Value yes, Value no) {
  return stablehlo::SelectOp::create(builder, loc, yes.getType(), condition,
                                     yes, no);
}

Value StablehloTarget::function(Operation *op, Value a) {
  namespace hlo = stablehlo;
  using namespace math;
  auto scaledLog = [&](double scale) {
    return binary<hlo::MulOp>(unary<hlo::LogOp>(a), splatLike(a, scale));
  };
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<arith::NegFOp>([&](auto) { return unary<hlo::NegOp>(a); })
      .Case<AbsFOp>([&](auto) { return unary<hlo::AbsOp>(a); })
      .Case<FloorOp>([&](auto) { return unary<hlo::FloorOp>(a); })
      .Case<CeilOp>([&](auto) { return unary<hlo::CeilOp>(a); })
      .Case<RoundEvenOp>(
          [&](auto) { return unary<hlo::RoundNearestEvenOp>(a); })
      .Case<TruncOp>([&](auto) {
        Value isNegative =
            compare(builder, loc, a, splatLike(a, 0), ComparisonDirection::LT);
        return select(isNegative, unary<hlo::CeilOp>(a),
                      unary<hlo::FloorOp>(a));
      })
      .Case<ExpOp>([&](auto) { return unary<hlo::ExpOp>(a); })
      .Case<ExpM1Op>([&](auto) { return unary<hlo::Expm1Op>(a); })
      .Case<Exp2Op>(
          [&](auto) { return binary<hlo::PowOp>(splatLike(a, 2), a); })
      .Case<LogOp>([&](auto) { return unary<hlo::LogOp>(a); })
      .Case<Log1pOp>([&](auto) { return unary<hlo::Log1pOp>(a); })
      .Case<Log2Op>([&](auto) { return scaledLog(std::numbers::log2e); })
      .Case<Log10Op>([&](auto) { return scaledLog(std::numbers::log10e); })
      .Case<SqrtOp>([&](auto) { return unary<hlo::SqrtOp>(a); })
      .Case<RsqrtOp>([&](auto) { return unary<hlo::RsqrtOp>(a); })
      .Case<SinOp>([&](auto) { return unary<hlo::SineOp>(a); })
      .Case<CosOp>([&](auto) { return unary<hlo::CosineOp>(a); })
      .Case<TanOp>([&](auto) { return unary<hlo::TanOp>(a); })
      .Case<TanhOp>([&](auto) { return unary<hlo::TanhOp>(a); })
      .Case<AtanOp>(
          [&](auto) { return binary<hlo::Atan2Op>(a, splatLike(a, 1)); })
      .Default(Value());
}

Value StablehloTarget::arithmetic(Operation *op, Value a, Value b) {
  namespace hlo = stablehlo;
  using namespace arith;
  auto isNan = [&](Value x) {
    return compare(builder, loc, x, x, ComparisonDirection::NE);
  };
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<AddFOp, AddIOp>([&](auto) { return binary<hlo::AddOp>(a, b); })
      .Case<SubFOp, SubIOp>([&](auto) { return binary<hlo::SubtractOp>(a, b); })
      .Case<MulFOp, MulIOp>([&](auto) { return binary<hlo::MulOp>(a, b); })
      .Case<DivFOp, DivSIOp>([&](auto) { return binary<hlo::DivOp>(a, b); })
      .Case<RemFOp, RemSIOp>([&](auto) { return binary<hlo::RemOp>(a, b); })
      .Case<math::PowFOp>([&](auto) { return binary<hlo::PowOp>(a, b); })
      .Case<math::Atan2Op>([&](auto) { return binary<hlo::Atan2Op>(a, b); })
      .Case<MaximumFOp, MaxSIOp>([&](auto) { return binary<hlo::MaxOp>(a, b); })
      .Case<MinimumFOp, MinSIOp>([&](auto) { return binary<hlo::MinOp>(a, b); })
      .Case<MaxNumFOp, MinNumFOp>([&](auto) {
        Value extreme = isa<MaxNumFOp>(op) ? binary<hlo::MaxOp>(a, b)
                                           : binary<hlo::MinOp>(a, b);
        return select(isNan(a), b, select(isNan(b), a, extreme));
      })
      .Default(Value());
}

Value StablehloTarget::bitwise(Operation *op, Value a, Value b) {
  namespace hlo = stablehlo;
  using namespace arith;
  // The unsigned minimum and maximum of bools are `and` and `or`.
  if (isa<MinUIOp, MaxUIOp>(op) && !op->getResult(0).getType().isInteger(1))
    return reject(op, a.getType());
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<AndIOp, MinUIOp>([&](auto) { return binary<hlo::AndOp>(a, b); })
      .Case<OrIOp, MaxUIOp>([&](auto) { return binary<hlo::OrOp>(a, b); })
      .Case<XOrIOp>([&](auto) { return binary<hlo::XorOp>(a, b); })
      .Case<ShLIOp>([&](auto) { return binary<hlo::ShiftLeftOp>(a, b); })
      .Case<ShRSIOp>(
          [&](auto) { return binary<hlo::ShiftRightArithmeticOp>(a, b); })
      .Case<ShRUIOp>(
          [&](auto) { return binary<hlo::ShiftRightLogicalOp>(a, b); })
      .Default(Value());
}

Value StablehloTarget::elementwise(Operation *op, ValueRange given) {
  namespace hlo = stablehlo;
  using namespace arith;
  SmallVector<int64_t> sizes = broadcastSizes(given);
  SmallVector<Value> operands;
  for (Value operand : given)
    operands.push_back(broadcast(operand, sizes));
  Value a = operands[0], b = operands.size() > 1 ? operands[1] : Value();
  if (Value result = function(op, a))
    return result;
  if (Value result = arithmetic(op, a, b))
    return result;
  if (Value result = bitwise(op, a, b))
    return result;
  Type type = typeOf(a).clone(op->getResult(0).getType());
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<math::FmaOp>([&](auto) {
        return binary<hlo::AddOp>(binary<hlo::MulOp>(a, b), operands[2]);
      })
      .Case<CmpFOp>([&](CmpFOp compared) {
        return compareFloats(op, compared.getPredicate(), operands);
      })
      .Case<CmpIOp>([&](auto) { return compareIntegers(op, operands); })
      .Case<SelectOp>([&](auto) { return select(a, b, operands[2]); })
      .Case<BitcastOp>([&](auto) {
        return hlo::BitcastConvertOp::create(builder, loc, type, a).getResult();
      })
      .Case<ExtFOp, TruncFOp, SIToFPOp, UIToFPOp, FPToSIOp, ExtSIOp, ExtUIOp,
            TruncIOp>([&](auto) { return convert(op, a); })
      .Default([&](Operation *) { return reject(op, type); });
}
