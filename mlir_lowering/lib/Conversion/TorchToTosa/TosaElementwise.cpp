//===- TosaElementwise.cpp - Scalar code as TOSA's elementwise ops --------===//
//
// TOSA has few functions. Other functions are expressed in terms of them if
// that loses no digits; otherwise, they are rejected.
//
//===----------------------------------------------------------------------===//

#include "TosaTarget.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace mlir::torch_ltc;

LogicalResult TosaTarget::expandScalarCode(Operation *body) {
  RewritePatternSet patterns(builder.getContext());
  math::populateExpansionPatterns(patterns, {"tan", "cosh"});
  return applyPatternsGreedily(body, std::move(patterns));
}

//===----------------------------------------------------------------------===//
// Forms of ops
//===----------------------------------------------------------------------===//

template <typename OpTy> Value TosaTarget::binary(Value a, Value b) {
  return OpTy::create(builder, loc, typeOf(a).clone(broadcastSizes({a, b})), a,
                      b);
}

template <typename OpTy> Value TosaTarget::unary(Value a) {
  return OpTy::create(builder, loc, a.getType(), a);
}

template <typename OpTy> Value TosaTarget::compare(Value a, Value b) {
  auto type =
      RankedTensorType::get(broadcastSizes({a, b}), builder.getI1Type());
  return OpTy::create(builder, loc, type, a, b);
}

Value TosaTarget::mul(Value a, Value b) {
  // Emit x * 0 as x - x: MLIR 22 folds x * 0 to 0, even for NaN and infinities.
  if (matchPattern(a, m_AnyZeroFloat()))
    std::swap(a, b);
  if (matchPattern(b, m_AnyZeroFloat()) &&
      sizesOf(a) == ArrayRef<int64_t>(broadcastSizes({a, b})))
    return binary<tosa::SubOp>(a, a);
  return tosa::MulOp::create(builder, loc,
                             typeOf(a).clone(broadcastSizes({a, b})), a, b,
                             zeroPoint(builder.getI8Type()));
}

Value TosaTarget::divide(Value a, Value b) {
  Type element = typeOf(a).getElementType();
  if (element.getIntOrFloatBitWidth() >= 32)
    return binary<tosa::IntDivOp>(a, b);
  auto convert = [&](Value x, Type to) -> Value {
    return tosa::CastOp::create(builder, loc, typeOf(x).clone(to), x);
  };
  Type wide = builder.getI32Type();
  return convert(binary<tosa::IntDivOp>(convert(a, wide), convert(b, wide)),
                 element);
}

Value TosaTarget::logicalNot(Value a) { return unary<tosa::LogicalNotOp>(a); }

Value TosaTarget::select(Value condition, Value yes, Value no) {
  return tosa::SelectOp::create(
      builder, loc, typeOf(yes).clone(broadcastSizes({condition, yes, no})),
      condition, yes, no);
}

Value TosaTarget::splatLike(Value tensor, double value) {
  SmallVector<int64_t> ones(typeOf(tensor).getRank(), 1);
  Type element = typeOf(tensor).getElementType();
  if (isa<FloatType>(element))
    return splat(ones, builder.getFloatAttr(element, value));
  return splat(ones,
               builder.getIntegerAttr(element, static_cast<int64_t>(value)));
}

//===----------------------------------------------------------------------===//
// Comparisons and casts
//===----------------------------------------------------------------------===//

Value TosaTarget::compareFloats(Operation *op, arith::CmpFPredicate predicate,
                                ValueRange operands) {
  Value a = operands[0], b = operands[1];
  if (auto negated = negatedUnordered(predicate))
    return logicalNot(compareFloats(op, *negated, operands));
  switch (predicate) {
  case arith::CmpFPredicate::OEQ:
    return compare<tosa::EqualOp>(a, b);
  case arith::CmpFPredicate::OGT:
    return compare<tosa::GreaterOp>(a, b);
  case arith::CmpFPredicate::OGE:
    return compare<tosa::GreaterEqualOp>(a, b);
  case arith::CmpFPredicate::OLT:
    return compare<tosa::GreaterOp>(b, a);
  case arith::CmpFPredicate::OLE:
    return compare<tosa::GreaterEqualOp>(b, a);
  case arith::CmpFPredicate::UNO: {
    Value aIsNan = logicalNot(compare<tosa::EqualOp>(a, a));
    if (a == b)
      return aIsNan;
    return binary<tosa::LogicalOrOp>(aIsNan,
                                     logicalNot(compare<tosa::EqualOp>(b, b)));
  }
  default:
    return reject(op, RankedTensorType::get(broadcastSizes(operands),
                                            builder.getI1Type()));
  }
}

Value TosaTarget::compareIntegers(Operation *op, ValueRange operands) {
  Value a = operands[0], b = operands[1];
  Type element = typeOf(a).getElementType();
  bool isBool = element.isInteger(1);
  arith::CmpIPredicate predicate = mlir::cast<arith::CmpIOp>(op).getPredicate();
  // Adding half the range to both operands turns an unsigned comparison into a
  // signed one.
  if (predicate >= arith::CmpIPredicate::ult && !isBool) {
    if (element.getIntOrFloatBitWidth() < 32)
      return reject(op, RankedTensorType::get(broadcastSizes(operands),
                                              builder.getI1Type()));
    Value half = splat(
        SmallVector<int64_t>(typeOf(a).getRank(), 1),
        builder.getIntegerAttr(element, APInt::getSignedMinValue(
                                            element.getIntOrFloatBitWidth())));
    a = binary<tosa::AddOp>(a, half);
    b = binary<tosa::AddOp>(b, half);
    predicate = signedPredicate(predicate);
  }
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return isBool ? logicalNot(binary<tosa::LogicalXorOp>(a, b))
                  : compare<tosa::EqualOp>(a, b);
  case arith::CmpIPredicate::ne:
    return isBool ? binary<tosa::LogicalXorOp>(a, b)
                  : logicalNot(compare<tosa::EqualOp>(a, b));
  case arith::CmpIPredicate::sgt:
    return compare<tosa::GreaterOp>(a, b);
  case arith::CmpIPredicate::sge:
    return compare<tosa::GreaterEqualOp>(a, b);
  case arith::CmpIPredicate::slt:
    return compare<tosa::GreaterOp>(b, a);
  case arith::CmpIPredicate::sle:
    return compare<tosa::GreaterEqualOp>(b, a);
  // Unsigned comparisons of bools.
  case arith::CmpIPredicate::ugt:
    return binary<tosa::LogicalAndOp>(a, logicalNot(b));
  case arith::CmpIPredicate::uge:
    return binary<tosa::LogicalOrOp>(a, logicalNot(b));
  case arith::CmpIPredicate::ult:
    return binary<tosa::LogicalAndOp>(b, logicalNot(a));
  case arith::CmpIPredicate::ule:
    return binary<tosa::LogicalOrOp>(b, logicalNot(a));
  }
  llvm_unreachable("all predicates are handled");
}

Value TosaTarget::cast(Operation *op, Value operand) {
  Type to = op->getResult(0).getType();
  RankedTensorType from = typeOf(operand);
  if (to.isF64())
    return reject("TOSA has no float64, in which this op computes",
                  from.clone(to));
  bool isBool = from.getElementType().isInteger(1);
  bool isUnsigned = isa<arith::UIToFPOp, arith::ExtUIOp>(op);
  if (isUnsigned && !isBool)
    return reject(op, from.clone(to));
  // tosa.cast rounds floats to the nearest integer, arith.fptosi towards zero.
  if (isa<arith::FPToSIOp>(op))
    operand = truncate(operand);
  if (from.getElementType() == to)
    return operand;
  return tosa::CastOp::create(builder, loc, from.clone(to), operand);
}

//===----------------------------------------------------------------------===//
// All scalar ops
//===----------------------------------------------------------------------===//

Value TosaTarget::truncate(Value a) {
  return select(compare<tosa::GreaterOp>(splatLike(a, 0), a),
                unary<tosa::CeilOp>(a), unary<tosa::FloorOp>(a));
}

Value TosaTarget::expm1(Value a) {
  // exp(x) - 1 = tanh(x / 2) * (exp(x) + 1), without cancellation for small x.
  Value half = mul(a, splatLike(a, 0.5));
  Value sum = binary<tosa::AddOp>(unary<tosa::ExpOp>(a), splatLike(a, 1));
  return mul(unary<tosa::TanhOp>(half), sum);
}

Value TosaTarget::log1p(Value a) {
  // log(1 + x) = log(u) * x / (u - 1) with u = 1 + x, in which the rounding
  // errors of u cancel.
  Value u = binary<tosa::AddOp>(a, splatLike(a, 1));
  Value rest = binary<tosa::SubOp>(u, splatLike(a, 1));
  Value quotient = mul(a, unary<tosa::ReciprocalOp>(rest));
  Value result = mul(unary<tosa::LogOp>(u), quotient);
  Value isSmall = compare<tosa::EqualOp>(rest, splatLike(a, 0));
  Value infinity = splatLike(a, std::numeric_limits<double>::infinity());
  Value isInfinite = compare<tosa::EqualOp>(a, infinity);
  return select(isInfinite, a, select(isSmall, a, result));
}

template <typename OpTy>
Value TosaTarget::extreme(Value a, Value b, bool ignoresNaN) {
  Type type = typeOf(a).clone(broadcastSizes({a, b}));
  if (!ignoresNaN)
    return OpTy::create(builder, loc, type, a, b);
  auto mode = tosa::NanPropagationModeAttr::get(
      builder.getContext(), tosa::NanPropagationMode::IGNORE);
  return OpTy::create(builder, loc, type, a, b, mode);
}

Value TosaTarget::function(Operation *op, Value a) {
  using namespace math;
  auto scaledLog = [&](double scale) {
    return mul(unary<tosa::LogOp>(a), splatLike(a, scale));
  };
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<arith::NegFOp>([&](auto) {
        Value zero = zeroPoint(typeOf(a).getElementType());
        return tosa::NegateOp::create(builder, loc, a.getType(), a, zero, zero)
            .getResult();
      })
      .Case<AbsFOp>([&](auto) { return unary<tosa::AbsOp>(a); })
      .Case<FloorOp>([&](auto) { return unary<tosa::FloorOp>(a); })
      .Case<CeilOp>([&](auto) { return unary<tosa::CeilOp>(a); })
      .Case<TruncOp>([&](auto) { return truncate(a); })
      .Case<ExpOp>([&](auto) { return unary<tosa::ExpOp>(a); })
      .Case<Exp2Op>(
          [&](auto) { return binary<tosa::PowOp>(splatLike(a, 2), a); })
      .Case<ExpM1Op>([&](auto) { return expm1(a); })
      .Case<LogOp>([&](auto) { return unary<tosa::LogOp>(a); })
      .Case<Log2Op>([&](auto) { return scaledLog(std::numbers::log2e); })
      .Case<Log10Op>([&](auto) { return scaledLog(std::numbers::log10e); })
      .Case<Log1pOp>([&](auto) { return log1p(a); })
      .Case<TanhOp>([&](auto) { return unary<tosa::TanhOp>(a); })
      .Case<ErfOp>([&](auto) { return unary<tosa::ErfOp>(a); })
      .Case<SinOp>([&](auto) { return unary<tosa::SinOp>(a); })
      .Case<CosOp>([&](auto) { return unary<tosa::CosOp>(a); })
      .Case<RsqrtOp>([&](auto) { return unary<tosa::RsqrtOp>(a); })
      .Case<SqrtOp>(
          [&](auto) { return binary<tosa::PowOp>(a, splatLike(a, 0.5)); })
      .Default(Value());
}

Value TosaTarget::arithmetic(Operation *op, Value a, Value b) {
  using namespace arith;
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<AddFOp, AddIOp>([&](auto) { return binary<tosa::AddOp>(a, b); })
      .Case<SubFOp, SubIOp>([&](auto) { return binary<tosa::SubOp>(a, b); })
      .Case<MulFOp, MulIOp>([&](auto) { return mul(a, b); })
      .Case<DivFOp>([&](auto) { return mul(a, unary<tosa::ReciprocalOp>(b)); })
      .Case<DivSIOp>([&](auto) { return divide(a, b); })
      .Case<RemSIOp>([&](auto) {
        Value whole = mul(divide(a, b), b);
        return binary<tosa::SubOp>(a, whole);
      })
      .Case<math::PowFOp>([&](auto) { return binary<tosa::PowOp>(a, b); })
      .Case<MaximumFOp, MaxSIOp>(
          [&](auto) { return extreme<tosa::MaximumOp>(a, b, false); })
      .Case<MinimumFOp, MinSIOp>(
          [&](auto) { return extreme<tosa::MinimumOp>(a, b, false); })
      .Case<MaxNumFOp>(
          [&](auto) { return extreme<tosa::MaximumOp>(a, b, true); })
      .Case<MinNumFOp>(
          [&](auto) { return extreme<tosa::MinimumOp>(a, b, true); })
      .Default(Value());
}

Value TosaTarget::bitwise(Operation *op, Value a, Value b) {
  using namespace arith;
  bool isBool = op->getResult(0).getType().isInteger(1);
  // The unsigned minimum and maximum of bools are `and` and `or`.
  if (isa<MinUIOp, MaxUIOp>(op) && !isBool)
    return reject(op, a.getType());
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<AndIOp, MinUIOp>([&](auto) {
        return isBool ? binary<tosa::LogicalAndOp>(a, b)
                      : binary<tosa::BitwiseAndOp>(a, b);
      })
      .Case<OrIOp, MaxUIOp>([&](auto) {
        return isBool ? binary<tosa::LogicalOrOp>(a, b)
                      : binary<tosa::BitwiseOrOp>(a, b);
      })
      .Case<XOrIOp>([&](auto) {
        return isBool ? binary<tosa::LogicalXorOp>(a, b)
                      : binary<tosa::BitwiseXorOp>(a, b);
      })
      .Case<ShLIOp>(
          [&](auto) { return binary<tosa::LogicalLeftShiftOp>(a, b); })
      .Case<ShRUIOp>(
          [&](auto) { return binary<tosa::LogicalRightShiftOp>(a, b); })
      .Case<ShRSIOp>([&](auto) {
        return tosa::ArithmeticRightShiftOp::create(
                   builder, loc, typeOf(a).clone(broadcastSizes({a, b})), a, b,
                   /*round=*/false)
            .getResult();
      })
      .Default(Value());
}

Value TosaTarget::elementwise(Operation *op, ValueRange operands) {
  using namespace arith;
  Value a = operands[0], b = operands.size() > 1 ? operands[1] : Value();
  if (Value result = function(op, a))
    return result;
  if (Value result = arithmetic(op, a, b))
    return result;
  if (Value result = bitwise(op, a, b))
    return result;
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<math::FmaOp>(
          [&](auto) { return binary<tosa::AddOp>(mul(a, b), operands[2]); })
      .Case<CmpFOp>([&](CmpFOp compared) {
        return compareFloats(op, compared.getPredicate(), operands);
      })
      .Case<CmpIOp>([&](auto) { return compareIntegers(op, operands); })
      .Case<SelectOp>([&](auto) { return select(a, b, operands[2]); })
      .Case<ExtFOp, TruncFOp, SIToFPOp, UIToFPOp, FPToSIOp, ExtSIOp, ExtUIOp,
            TruncIOp>([&](auto) { return cast(op, a); })
      .Default([&](Operation *) {
        return reject(op, RankedTensorType::get(broadcastSizes(operands),
                                                op->getResult(0).getType()));
      });
}
