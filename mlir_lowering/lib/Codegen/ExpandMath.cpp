//===- ExpandMath.cpp - Math functions, bfloat16, integer division --------===//

#include "torch_ltc/Codegen/Passes.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>
#include <limits>

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_EXPANDMATH
#include "torch_ltc/Codegen/Passes.h.inc"

namespace {

/// Whether MLIR 22's polynomial for a function of f32 is within 4 ulp, measured
/// against f64. (Its sin and cos lose all digits near their zeros, its atan2 is
/// NaN for two zeros or two infinities, and its atan is off by 35 ulp.)
bool usePolynomial(StringRef function) {
  static constexpr StringLiteral accurate[] = {
      "math.tanh", "math.erf",  "math.exp",  "math.expm1",
      "math.log",  "math.log2", "math.log1p"};
  return llvm::is_contained(accurate, function);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Value f64(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
}

/// Returns `chosen` if `value` equals `number`, otherwise `other`.
Value selectWhere(ImplicitLocOpBuilder &b, Value value, double number,
                  Value chosen, Value other) {
  Value isEqual = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, value,
                                        f64(b, number));
  return arith::SelectOp::create(b, isEqual, chosen, other);
}

/// Expands log(1 + x) in f64. MLIR 22's f64 approximations of this function and
/// of exp(x) - 1 lose all digits of a small x. The quotients in this function
/// and the next one compensate for the rounding of 1 + x and of exp(x) (W.
/// Kahan, in N. Higham, "Accuracy and Stability of Numerical Algorithms",
/// 1.14.1 and problem 1.5).
LogicalResult expandLog1p(math::Log1pOp op, PatternRewriter &rewriter) {
  if (!op.getType().isF64())
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  Value x = op.getOperand(), one = f64(b, 1);
  Value sum = arith::AddFOp::create(b, x, one);
  Value rounded = arith::SubFOp::create(b, sum, one);
  Value ratio = arith::DivFOp::create(b, x, rounded);
  Value log = math::LogOp::create(b, sum);
  Value result = arith::MulFOp::create(b, log, ratio);
  result = selectWhere(b, sum, kInfinity, sum, result);
  rewriter.replaceOp(op, selectWhere(b, sum, 1, x, result));
  return success();
}

LogicalResult expandExpM1(math::ExpM1Op op, PatternRewriter &rewriter) {
  if (!op.getType().isF64())
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  Value x = op.getOperand();
  Value exp = math::ExpOp::create(b, x);
  Value difference = arith::SubFOp::create(b, exp, f64(b, 1));
  Value log = math::LogOp::create(b, exp);
  Value ratio = arith::DivFOp::create(b, x, log);
  Value result = arith::MulFOp::create(b, difference, ratio);
  result = selectWhere(b, difference, -1, difference, result);
  result = selectWhere(b, exp, kInfinity, exp, result);
  rewriter.replaceOp(op, selectWhere(b, exp, 1, x, result));
  return success();
}

/// Computes atan(x) = c + atan(t), |t| <= tan(pi / 8), within 2 ulp: c is 0,
/// pi / 4 or pi / 2, depending on |x|.
LogicalResult expandAtan(math::AtanOp op, PatternRewriter &rewriter) {
  if (!op.getType().isF32())
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  auto f32 = [&](float value) -> Value {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  };
  auto select = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(b, condition, yes, no);
  };
  Value x = op.getOperand(), one = f32(1);
  Value a = math::AbsFOp::create(b, x);
  auto isAbove = [&](float bound) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, a, f32(bound));
  };
  Value isMiddle = isAbove(0.414213562f), isLarge = isAbove(2.41421356f);
  Value numerator = select(isMiddle, arith::SubFOp::create(b, a, one), a);
  Value divisor = select(isMiddle, arith::AddFOp::create(b, a, one), one);
  numerator = select(isLarge, f32(-1), numerator);
  divisor = select(isLarge, a, divisor);
  Value t = arith::DivFOp::create(b, numerator, divisor);
  Value square = arith::MulFOp::create(b, t, t);
  // (atan(t) / t - 1) / t^2, fitted at Chebyshev nodes.
  Value sum = f32(-0.0645324439f);
  for (float term : {0.107439309f, -0.142639279f, 0.199995354f, -0.333333313f})
    sum = arith::AddFOp::create(b, arith::MulFOp::create(b, sum, square),
                                f32(term));
  Value cubic = arith::MulFOp::create(b, t, square);
  Value angle =
      arith::AddFOp::create(b, arith::MulFOp::create(b, cubic, sum), t);
  Value part = select(isMiddle, f32(0.785398163f), f32(0));
  part = select(isLarge, f32(1.57079633f), part);
  Value magnitude = arith::AddFOp::create(b, part, angle);
  rewriter.replaceOpWithNewOp<math::CopySignOp>(op, magnitude, x);
  return success();
}

/// For x below this, MLIR 22's polynomial for exp(x) in f32 returns 0 where the
/// result is a denormal number.
constexpr float kMinNormalExponent = -87;

/// Whether the only users of the result add a constant above 1e-30 (or below
/// -1e-30) to it, as in a sigmoid: a denormal number doesn't change the sum.
bool isLostInSums(math::ExpOp op) {
  return !op->use_empty() && llvm::all_of(op->getUsers(), [](Operation *user) {
    FloatAttr constant;
    return isa<arith::AddFOp>(user) &&
           llvm::any_of(user->getOperands(), [&](Value operand) {
             return matchPattern(operand, m_Constant(&constant)) &&
                    std::abs(constant.getValueAsDouble()) > 1e-30;
           });
  });
}

/// Computes exp(x) for x < kMinNormalExponent as 2^-64 exp(x + 64 log(2)),
/// which takes two masked instructions.
void keepDenormalExponentials(Operation *root) {
  SmallVector<math::ExpOp> exponentials;
  root->walk([&](math::ExpOp op) {
    if (op.getType().isF32() && !isLostInSums(op))
      exponentials.push_back(op);
  });
  for (math::ExpOp op : exponentials) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    auto f32 = [&](float value) -> Value {
      return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
    };
    Value x = op.getOperand();
    Value isSmall = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x,
                                          f32(kMinNormalExponent));
    Value shifted = arith::AddFOp::create(b, x, f32(64 * 0.693147182f));
    Value power =
        math::ExpOp::create(b, arith::SelectOp::create(b, isSmall, shifted, x));
    Value scaled = arith::MulFOp::create(b, power, f32(0x1p-64f));
    op.replaceAllUsesWith(
        Value(arith::SelectOp::create(b, isSmall, scaled, power)));
    op.erase();
  }
}

/// Runs arithmetic and math functions on bfloat16 and half values in f32.
LogicalResult widenNarrowFloats(Operation *root) {
  MLIRContext *context = root->getContext();
  SetVector<Type> narrow;
  narrow.insert(BFloat16Type::get(context));
  narrow.insert(Float16Type::get(context));
  Type wide = Float32Type::get(context);
  {
    SetVector<Type> supported;
    supported.insert(wide);
    supported.insert(Float64Type::get(context));
    TypeConverter converter;
    math::populateExtendToSupportedTypesTypeConverter(converter, supported,
                                                      wide);
    ConversionTarget target(*context);
    math::populateExtendToSupportedTypesConversionTarget(target, converter);
    RewritePatternSet patterns(context);
    math::populateExtendToSupportedTypesPatterns(patterns, converter);
    if (failed(applyPartialConversion(root, target, std::move(patterns))))
      return failure();
  }
  TypeConverter converter;
  arith::populateEmulateUnsupportedFloatsConversions(
      converter, narrow.getArrayRef(), wide);
  ConversionTarget target(*context);
  arith::populateEmulateUnsupportedFloatsLegality(target, converter);
  RewritePatternSet patterns(context);
  arith::populateEmulateUnsupportedFloatsPatterns(patterns, converter);
  return applyPartialConversion(root, target, std::move(patterns));
}

/// Returns a divisor that never traps: 1 if `divisor` is 0, or if it is -1 and
/// the division is signed; otherwise `divisor`.
Value safeDivisor(OpBuilder &builder, Location loc, Value divisor,
                  bool isSigned) {
  Type type = divisor.getType();
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getIntegerAttr(type, value));
  };
  Value trap = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                     divisor, constant(0));
  if (isSigned) {
    Value minusOne = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, divisor, constant(-1));
    trap = arith::OrIOp::create(builder, loc, trap, minusOne);
  }
  return arith::SelectOp::create(builder, loc, trap, constant(1), divisor);
}

bool isSafeConstant(Value divisor) {
  IntegerAttr value;
  return matchPattern(divisor, m_Constant(&value)) &&
         !value.getValue().isZero() && !value.getValue().isAllOnes();
}

/// Replaces divisions that may trap: x86 traps on division by zero and on the
/// overflow of MIN / -1.
template <typename OpTy, bool isSigned, bool isRemainder>
void guardDivisions(Operation *root) {
  root->walk([](OpTy op) {
    auto type = dyn_cast<IntegerType>(op.getType());
    if (!type || isSafeConstant(op.getRhs()))
      return;
    OpBuilder builder(op);
    Location loc = op.getLoc();
    Value lhs = op.getLhs(), rhs = op.getRhs();
    auto isValue = [&](int64_t value) -> Value {
      Value constant = arith::ConstantOp::create(
          builder, loc, builder.getIntegerAttr(type, value));
      return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rhs,
                                   constant);
    };
    Value zero = arith::ConstantOp::create(builder, loc,
                                           builder.getIntegerAttr(type, 0));
    Value divisor = safeDivisor(builder, loc, rhs, isSigned);
    Value result = OpTy::create(builder, loc, lhs, divisor);
    if (isSigned) {
      Value negated = arith::SubIOp::create(builder, loc, zero, lhs);
      result = arith::SelectOp::create(builder, loc, isValue(-1),
                                       isRemainder ? zero : negated, result);
    }
    result = arith::SelectOp::create(builder, loc, isValue(0), zero, result);
    op.replaceAllUsesWith(result);
    op.erase();
  });
}

class ExpandMath : public impl::ExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    Operation *root = getOperation();
    if (failed(widenNarrowFloats(root)))
      return signalPassFailure();
    keepDenormalExponentials(root);
    {
      RewritePatternSet patterns(&getContext());
      populateMathAlgebraicSimplificationPatterns(patterns);
      populateMathPolynomialApproximationPatterns(patterns, usePolynomial);
      patterns.add(expandLog1p);
      patterns.add(expandExpM1);
      patterns.add(expandAtan);
      arith::populateCeilFloorDivExpandOpsPatterns(patterns);
      math::populateExpansionPatterns(
          patterns, {"math.tan", "math.sinh", "math.cosh", "math.fpowi",
                     "math.ctlz", "math.asinh", "math.acosh", "math.atanh"});
      if (failed(applyPatternsGreedily(root, std::move(patterns))))
        return signalPassFailure();
    }
    guardDivisions<arith::DivSIOp, true, false>(root);
    guardDivisions<arith::RemSIOp, true, true>(root);
    guardDivisions<arith::DivUIOp, false, false>(root);
    guardDivisions<arith::RemUIOp, false, true>(root);
    RewritePatternSet patterns(&getContext());
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(root, std::move(patterns))))
      return signalPassFailure();
  }
};

} // namespace
} // namespace mlir::torch_ltc
