//===- TensorLowering.cpp - Lowering of one torch op to a target ----------===//

#include "TensorLowering.h"

#include "torch_ltc/Dialect/Torch/TorchOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// Scalar code as tensor ops
//===----------------------------------------------------------------------===//

/// A temporary function outside the module, into which scalar code is emitted.
static func::FuncOp makeScratch(OpBuilder &builder, Location loc,
                                ArrayRef<Type> arguments) {
  auto function = func::FuncOp::create(
      loc, "scratch", builder.getFunctionType(arguments, TypeRange()));
  function.addEntryBlock();
  return function;
}

namespace {
/// Converts the ops of a scratch function to ops of the target.
class ScalarTranslator {
public:
  ScalarTranslator(TensorTarget &target, size_t rank)
      : target(target), rank(rank) {}

  /// Maps `element` to `tensor`, reshaped to rank `rank` with leading
  /// dimensions of size 1.
  void bind(Value element, Value tensor) {
    SmallVector<int64_t> sizes(TensorTarget::sizesOf(tensor));
    sizes.insert(sizes.begin(), rank - sizes.size(), 1);
    values.map(element, target.reshape(tensor, sizes));
  }

  Value translate(Block &block) {
    for (Operation &op : block.without_terminator()) {
      if (target.hasFailed())
        break;
      values.map(op.getResult(0), translate(&op));
    }
    // Null if an earlier op was rejected.
    return values.lookupOrNull(block.getTerminator()->getOperand(0));
  }

private:
  Value translate(Operation *op) {
    if (op->getNumRegions() > 0)
      return target.reject(target.getName() + " has no loop for " +
                               op->getName().getStringRef(),
                           op->getResult(0).getType());
    TypedAttr scalar;
    if (matchPattern(op, m_Constant(&scalar)))
      return target.splat(SmallVector<int64_t>(rank, 1), scalar);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(values.lookup(operand));
    return target.elementwise(op, operands);
  }

  TensorTarget &target;
  size_t rank;
  IRMapping values;
};
} // namespace

Value TensorLowering::compute(ArrayRef<int64_t> sizes, ValueRange inputs,
                              ScalarBody body, ArrayRef<Type> elementTypes) {
  SmallVector<Type> types(elementTypes);
  SmallVector<Value> tensors(inputs);
  if (elementTypes.empty())
    for (Value input : inputs)
      types.push_back(TensorTarget::typeOf(input).getElementType());
  // Dynamic scalars are additional arguments.
  SmallVector<Value> numbers;
  for (OpArgument argument : getArguments()) {
    if (!isParameter(argument) || llvm::is_contained(numbers, argument))
      continue;
    numbers.push_back(argument);
    types.push_back(storageTypeOf(number(argument).dtype));
    tensors.push_back(tensor(argument));
  }
  OwningOpRef<func::FuncOp> scratch = makeScratch(builder, loc, types);
  Block &block = scratch->getBody().front();
  SmallVector<Value> operandsInside(getOperands());
  for (auto [number, inside] :
       llvm::zip(numbers, block.getArguments().drop_front(inputs.size())))
    operandsInside[positionOf(number)] = inside;
  OpBuilder nested = OpBuilder::atBlockEnd(&block);
  OpLowering inside(op, name, operandsInside, builder, target.getName(),
                    /*numbersAreTensors=*/true);
  Value result =
      body(nested, inside, block.getArguments().take_front(inputs.size()));
  if (!result)
    return target.reject("its arguments have an unsupported form",
                         RankedTensorType::get(sizes, builder.getI1Type()));
  auto type = RankedTensorType::get(sizes, result.getType());
  func::ReturnOp::create(nested, loc, result);
  if (failed(target.expandScalarCode(*scratch)))
    return target.reject("its scalar code can't be expanded", type);
  ScalarTranslator translator(target, sizes.size());
  for (auto [argument, tensor] : llvm::zip(block.getArguments(), tensors))
    translator.bind(argument, tensor);
  Value translated = translator.translate(block);
  if (target.hasFailed())
    return target.reject("", type);
  return target.broadcast(translated, sizes);
}

Value TensorLowering::convert(Value tensor, Type from, Type to) {
  if (from == to)
    return tensor;
  return compute(
      TensorTarget::sizesOf(tensor), tensor,
      [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
        return ScalarBuilder(nested, loc, to).convert(elements[0], from, to);
      });
}

Value TensorLowering::numberTensor(OpArgument argument, Type dtype) {
  return compute(
      {}, {}, [&](OpBuilder &nested, OpLowering &inside, ValueRange) {
        return inside.number(argument).materialize(nested, loc, dtype);
      });
}

//===----------------------------------------------------------------------===//
// Small operations
//===----------------------------------------------------------------------===//

TypedAttr TensorLowering::scalar(Type dtype, double value) {
  Type type = storageTypeOf(dtype);
  if (isa<FloatType>(type))
    return builder.getFloatAttr(type, value);
  return builder.getIntegerAttr(type, static_cast<int64_t>(value));
}

Value TensorLowering::zeros(ArrayRef<int64_t> sizes, Type dtype) {
  return target.splat(sizes, scalar(dtype, 0));
}

Value TensorLowering::add(Value a, Value b, Type dtype) {
  return compute(
      TensorTarget::sizesOf(a), {a, b},
      [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
        return ScalarBuilder(nested, loc, dtype).add(elements[0], elements[1]);
      });
}

Value TensorLowering::mul(Value a, Value b, Type dtype) {
  return compute(
      TensorTarget::sizesOf(a), {a, b},
      [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
        return ScalarBuilder(nested, loc, dtype).mul(elements[0], elements[1]);
      });
}

Value TensorLowering::select(Value condition, Value yes, Value no) {
  SmallVector<int64_t> sizes = broadcastSizes({condition, yes, no});
  return compute(sizes, {condition, yes, no},
                 [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
                   return arith::SelectOp::create(nested, loc, elements[0],
                                                  elements[1], elements[2])
                       .getResult();
                 });
}

Value TensorLowering::equal(Value a, Value b) {
  return compute(broadcastSizes({a, b}), {a, b},
                 [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
                   return arith::CmpIOp::create(nested, loc,
                                                arith::CmpIPredicate::eq,
                                                elements[0], elements[1])
                       .getResult();
                 });
}

Value TensorLowering::constantIntegers(ArrayRef<int64_t> sizes,
                                       ArrayRef<int64_t> values,
                                       Type elementType) {
  SmallVector<APInt> elements;
  for (int64_t value : values)
    elements.push_back(APInt(64, static_cast<uint64_t>(value))
                           .sextOrTrunc(elementType.getIntOrFloatBitWidth()));
  auto type = RankedTensorType::get(sizes, elementType);
  return target.constant(DenseElementsAttr::get(type, elements));
}

Value TensorLowering::constantBooleans(ArrayRef<int64_t> sizes,
                                       ArrayRef<bool> values) {
  auto type = RankedTensorType::get(sizes, builder.getI1Type());
  return target.constant(DenseElementsAttr::get(type, values));
}

Value TensorLowering::flatten(Value tensor) {
  return target.reshape(tensor,
                        {TensorTarget::typeOf(tensor).getNumElements()});
}

LogicalResult TensorLowering::replaceWith(ValueRange results) {
  if (failed(failIfContradictory()))
    return failure();
  if (target.hasFailed())
    return fail(target.getFailure());
  SmallVector<Value> reshaped;
  for (auto [number, value] : llvm::enumerate(results)) {
    // `value` may be null if the result is unused.
    if (!isResultUsed(number)) {
      reshaped.push_back(Value());
      continue;
    }
    value = target.reshape(value, resultSizes(number));
    Type expected = isa<torch::PrimNumToTensorScalarOp>(op)
                        ? target.numberTypeOf(resultDtype(number))
                        : target.elementTypeOf(resultDtype(number));
    if (TensorTarget::typeOf(value).getElementType() != expected)
      return op->emitError()
             << "the lowering of " << name << " made a " << value.getType()
             << " where the op's element type is " << expected;
    reshaped.push_back(value);
  }
  builder.replaceOp(op, reshaped);
  return success();
}
