//===- Elementwise.cpp - Elementwise torch ops to linalg.generic ----------===//
//
// All elementwise ops have one lowering: operands are broadcast by indexing
// maps, and the scalar builder that the op table names emits the body.
//
//===----------------------------------------------------------------------===//

#include "ElementwiseScalar.h"
#include "OpArguments.h"

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// Operands of a body
//===----------------------------------------------------------------------===//

std::pair<Value, Type> ElementwiseBody::raw(Argument argument) {
  Value operand = argument.operand;
  if (!op.isTensor(operand)) {
    NumberOperand number = op.number(operand);
    return {number.materialize(builder, loc, number.dtype), number.dtype};
  }
  Type type = op.dtype(operand);
  if (Value element = elements[op.positionOf(operand)])
    return {element, type};
  // For prim.NumToTensor.Scalar, use the number instead of the rank-0 tensor.
  if (std::optional<NumberOperand> number = op.tensorAsNumber(operand))
    return {number->materialize(builder, loc, type), type};
  op.contradict();
  return {ScalarBuilder(builder, loc, type).integer(0), type};
}

Value ElementwiseBody::arg(Argument argument) {
  // Emit the number in the compute dtype, so that no cast hides a constant.
  if (!isTensor(argument) && exactScalars) {
    NumberOperand number = op.number(argument.operand);
    return number.materialize(builder, loc, dtype);
  }
  auto [value, type] = raw(argument);
  return convert(convert(value, type, common), common, dtype);
}

Value ElementwiseBody::exactArg(Argument argument) {
  bool isScalar = !isTensor(argument) || op.rank(argument.operand) == 0;
  if (!isScalar || !exactScalars)
    return arg(argument);
  auto [value, type] = raw(argument);
  return convert(value, type, dtype);
}

Value ElementwiseBody::argAsBool(Argument argument) {
  auto [value, type] = raw(argument);
  return ScalarBuilder(builder, loc, type).truth(value);
}

std::optional<double> ElementwiseBody::known(Argument argument) const {
  if (!isTensor(argument))
    return op.number(argument.operand).asDouble();
  if (std::optional<NumberOperand> number = op.tensorAsNumber(argument.operand))
    return number->asDouble();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Common dtypes
//===----------------------------------------------------------------------===//

Type torch_ltc::resultTypeOfOperands(OpLowering &op) {
  Type groups[3];
  MLIRContext *context = op.op->getContext();
  for (Value argument : op.getArguments()) {
    if (op.isNone(argument))
      continue;
    unsigned group = 2;
    Type type;
    if (op.isTensor(argument)) {
      if (!op.tensorAsNumber(argument))
        group = op.rank(argument) == 0 ? 1 : 0;
      type = op.dtype(argument);
    } else {
      type = op.number(argument).dtype;
    }
    // A Python float counts as float32, the default dtype, although it is
    // stored as an f64.
    if (group == 2 && isa<FloatType>(type))
      type = Float32Type::get(context);
    groups[group] = groups[group] ? promoteDtypes(groups[group], type) : type;
  }
  Type result;
  for (Type group : groups) {
    if (!group)
      continue;
    if (!result || dtypeKind(group) > dtypeKind(result))
      result = result && dtypeKind(result) == 2 ? result : group;
  }
  return result;
}

namespace {
/// Values of the op table's column `dtype` that elementwise ops use.
enum class DtypeRule {
  promote,
  promote_float,
  self,
  argument,
  div_mode,
  boolean
};
} // namespace

//===----------------------------------------------------------------------===//
// The lowering
//===----------------------------------------------------------------------===//

/// Checks that no element is zero in the dtype of the computation: eager
/// PyTorch raises an error if an integer is divided by zero. Divisors that
/// aren't tensors are checked when the op is traced.
static Value checkDivisor(OpLowering &op, Value divisor, Type common) {
  auto type = cast<RankedTensorType>(divisor.getType());
  if (type.getNumElements() == 0)
    return divisor;
  // For example, the int64 divisor 256 becomes 0 in int8.
  if (unsigned width = cast<IntegerType>(common).getWidth();
      width > 1 && width < type.getElementTypeBitWidth())
    divisor = op.tensors.elementwise(
        type.getShape(), type.getElementType(), divisor,
        [&](OpBuilder &nested, Location loc, ValueRange arguments) {
          Value narrow = arith::TruncIOp::create(
              nested, loc, nested.getIntegerType(width), arguments[0]);
          Value wide = arith::ExtSIOp::create(nested, loc,
                                              type.getElementType(), narrow);
          return SmallVector<Value>{wide};
        })[0];
  return ltc::CheckBoundsOp::create(op.builder, op.loc, type, divisor,
                                    /*lower=*/0, /*upper=*/0,
                                    /*nonzero=*/true);
}

/// `divisor`: the argument by which the op divides integers, if any.
static LogicalResult lowerElementwise(OpLowering &op, ScalarEmitter emitter,
                                      DtypeRule rule, Value divisor) {
  SmallVector<Value> tensors = elementwiseTensors(op);
  bool inResultDtype = rule != DtypeRule::boolean;
  Type common = inResultDtype ? op.resultDtype() : resultTypeOfOperands(op);
  SmallVector<Value> inputs;
  for (Value tensor : tensors) {
    inputs.push_back(op.tensor(tensor));
    if (tensor == divisor && isa<IntegerType>(op.dtype(tensor)) &&
        !isa<FloatType>(common))
      inputs.back() = checkDivisor(op, inputs.back(), common);
  }
  bool failed = false;
  SmallVector<Value> results = op.tensors.elementwise(
      op.resultSizes(), op.resultType().getElementType(), inputs,
      [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        SmallVector<Value> elements(op.getArguments().size());
        for (auto [element, tensor] : llvm::zip(arguments, tensors))
          elements[op.positionOf(tensor)] = element;
        ElementwiseBody body(nested, op, common, inResultDtype, elements);
        Value value = emitter(body);
        failed = !value;
        if (failed)
          return SmallVector<Value>{body.integer(0)};
        if (inResultDtype)
          value = body.convert(value, body.dtype, op.resultDtype());
        return SmallVector<Value>{value};
      });
  if (failed)
    return op.fail("the scalar builder doesn't support these arguments");
  return op.replaceWith(results);
}

template <typename Arguments, Value (*emit)(ElementwiseBody &, Arguments),
          DtypeRule rule, bool divides>
static LogicalResult lower(OpLowering &op) {
  Arguments args(op.getArguments());
  if (Value unchanged = unchangedOperand(op, args))
    return op.replaceWith(op.tensor(unchanged));
  Value divisor;
  if constexpr (divides)
    divisor = args.other.operand;
  return lowerElementwise(op, emitScalar<Arguments, emit>, rule, divisor);
}

Value torch_ltc::emitIdentity(ElementwiseBody &s, IdentityArguments args) {
  return s.arg(args.self);
}
Value torch_ltc::emitCast(ElementwiseBody &s, CastArguments args) {
  return s.arg(args.self);
}

/// Each argument of an elementwise op may be a dynamic scalar.
static SmallVector<unsigned> allPositions() {
  return llvm::to_vector(llvm::seq<unsigned>(0, 10));
}

void torch_ltc::populateElementwiseLowerings(LoweringTable &table) {
  SmallVector<unsigned> dynamicScalars = allPositions();
  // The dtype rule `bool` is a C++ keyword, so the enum spells it `boolean`.
#define bool boolean
#define ELEMENTWISE_OP(op, builder, rule, divides)                             \
  table.add(                                                                   \
      op, lower<builder##Arguments, &emit##builder, DtypeRule::rule, divides>, \
      dynamicScalars);
#include "torch_ltc/Dialect/Torch/ElementwiseOps.inc"
#undef ELEMENTWISE_OP
#undef bool
}
