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

std::pair<Value, Type> ElementwiseBody::raw(unsigned position) {
  if (!op.isTensor(position)) {
    NumberOperand number = op.number(position);
    return {number.materialize(builder, loc, number.dtype), number.dtype};
  }
  Type type = op.dtype(position);
  if (elements[position])
    return {elements[position], type};
  // For prim.NumToTensor.Scalar, use the number instead of the rank-0 tensor.
  if (std::optional<NumberOperand> number = op.tensorAsNumber(position))
    return {number->materialize(builder, loc, type), type};
  op.contradict();
  return {ScalarBuilder(builder, loc, type).integer(0), type};
}

Value ElementwiseBody::arg(unsigned position) {
  // Emit the number in the compute dtype, so that no cast hides a constant.
  if (!op.isTensor(position) && exactScalars) {
    NumberOperand number = op.number(position);
    return number.materialize(builder, loc, dtype);
  }
  auto [value, type] = raw(position);
  return convert(convert(value, type, common), common, dtype);
}

Value ElementwiseBody::exactArg(unsigned position) {
  bool isScalar = !op.isTensor(position) || op.rank(position) == 0;
  if (!isScalar || !exactScalars)
    return arg(position);
  auto [value, type] = raw(position);
  return convert(value, type, dtype);
}

Value ElementwiseBody::argAsBool(unsigned position) {
  auto [value, type] = raw(position);
  return ScalarBuilder(builder, loc, type).truth(value);
}

std::optional<double> ElementwiseBody::known(unsigned position) const {
  if (!op.isTensor(position))
    return op.number(position).asDouble();
  if (std::optional<NumberOperand> number = op.tensorAsNumber(position))
    return number->asDouble();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Common dtypes
//===----------------------------------------------------------------------===//

Type torch_ltc::resultTypeOfOperands(OpLowering &op) {
  Type groups[3];
  MLIRContext *context = op.op->getContext();
  for (unsigned i = 0; i < op.getNumOperands(); ++i) {
    if (op.isNone(i))
      continue;
    unsigned group = 2;
    Type type;
    if (op.isTensor(i)) {
      if (!op.tensorAsNumber(i))
        group = op.rank(i) == 0 ? 1 : 0;
      type = op.dtype(i);
    } else {
      type = op.number(i).dtype;
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

using ScalarEmitter = Value (*)(ElementwiseBody &);

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

static LogicalResult lowerElementwise(OpLowering &op, ScalarEmitter emitter,
                                      DtypeRule rule, bool divides) {
  SmallVector<unsigned> positions = elementwiseOperands(op);
  SmallVector<Value> inputs;
  for (unsigned position : positions)
    inputs.push_back(op.tensor(position));
  bool inResultDtype = rule != DtypeRule::boolean;
  Type common = inResultDtype ? op.resultDtype() : resultTypeOfOperands(op);
  if (divides && !isa<FloatType>(common))
    for (auto [input, position] : llvm::zip(inputs, positions))
      if (position == 1 && isa<IntegerType>(op.dtype(1)))
        input = checkDivisor(op, input, common);
  bool failed = false;
  SmallVector<Value> results = op.tensors.elementwise(
      op.resultSizes(), op.resultType().getElementType(), inputs,
      [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        SmallVector<Value> elements(op.getNumOperands());
        for (auto [argument, position] : llvm::zip(arguments, positions))
          elements[position] = argument;
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

static LogicalResult lowerIdentity(OpLowering &op) {
  return op.replaceWith(op.tensor(0));
}

template <ScalarEmitter emitter, DtypeRule rule, bool divides>
static LogicalResult lower(OpLowering &op) {
  if constexpr (emitter == &emitIdentity)
    return lowerIdentity(op);
  if constexpr (emitter == &emitCast)
    if (op.dtype(0) == op.resultDtype())
      return lowerIdentity(op);
  return lowerElementwise(op, emitter, rule, divides);
}

Value torch_ltc::emitIdentity(ElementwiseBody &body) { return body.arg(0); }
Value torch_ltc::emitCast(ElementwiseBody &body) { return body.arg(0); }

/// Each argument of an elementwise op may be a dynamic scalar.
static SmallVector<unsigned> allPositions() {
  return llvm::to_vector(llvm::seq<unsigned>(0, 10));
}

void torch_ltc::populateElementwiseLowerings(LoweringTable &table) {
  SmallVector<unsigned> runtimeNumbers = allPositions();
  // The dtype rule `bool` is a C++ keyword, so the enum spells it `boolean`.
#define bool boolean
#define ELEMENTWISE_OP(op, builder, rule, divides)                             \
  table.add(op, lower<&emit##builder, DtypeRule::rule, divides>,               \
            runtimeNumbers);
#include "torch_ltc/Dialect/Torch/ElementwiseOps.inc"
#undef ELEMENTWISE_OP
#undef bool
  table.add("aten.detach", lowerIdentity);
  table.add("aten.alias", lowerIdentity);
  table.add("aten.contiguous", lowerIdentity);
  table.add("aten.lift_fresh", lowerIdentity);
}
