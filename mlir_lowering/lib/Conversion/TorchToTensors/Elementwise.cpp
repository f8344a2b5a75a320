//===- Elementwise.cpp - Elementwise torch ops on tensors -----------------===//
//
// The scalar builders that the op table names (TorchToLinalg/Elementwise*.cpp)
// define the computation of an op; this file converts their scalar code to
// tensor ops.
//
//===----------------------------------------------------------------------===//

#include "TensorLowering.h"

#include "../TorchToLinalg/ElementwiseScalar.h"
#include "../TorchToLinalg/OpArguments.h"

using namespace mlir;
using namespace mlir::torch_ltc;

using ScalarEmitter = Value (*)(ElementwiseBody &);

static LogicalResult lowerElementwise(TensorLowering &op, ScalarEmitter emitter,
                                      bool inResultDtype) {
  SmallVector<unsigned> positions = elementwiseOperands(op);
  SmallVector<Value> inputs;
  SmallVector<Type> types;
  for (unsigned position : positions) {
    inputs.push_back(op.tensor(position));
    types.push_back(storageTypeOf(op.dtype(position)));
  }
  Type common = inResultDtype ? op.resultDtype() : resultTypeOfOperands(op);
  Value result = op.compute(
      op.resultSizes(), inputs,
      [&](OpBuilder &nested, OpLowering &inside, ValueRange arguments) {
        SmallVector<Value> elements(op.getNumOperands());
        for (auto [argument, position] : llvm::zip(arguments, positions))
          elements[position] = argument;
        ElementwiseBody body(nested, inside, common, inResultDtype, elements);
        Value value = emitter(body);
        if (value && inResultDtype)
          value = body.convert(value, body.dtype, op.resultDtype());
        return value;
      },
      types);
  return op.replaceWith(result);
}

static LogicalResult lowerIdentity(TensorLowering &op) {
  return op.replaceWith(op.tensor(0));
}

// These are specializations because, with UBSan, g++ 12 doesn't accept
// comparisons of functions as constant expressions.
template <ScalarEmitter emitter> constexpr bool isIdentity = false;
template <> constexpr bool isIdentity<&emitIdentity> = true;
template <ScalarEmitter emitter> constexpr bool isCast = false;
template <> constexpr bool isCast<&emitCast> = true;

template <ScalarEmitter emitter, bool inResultDtype>
static LogicalResult lower(TensorLowering &op) {
  if constexpr (isIdentity<emitter>)
    return lowerIdentity(op);
  if constexpr (isCast<emitter>)
    if (op.dtype(0) == op.resultDtype())
      return lowerIdentity(op);
  return lowerElementwise(op, emitter, inResultDtype);
}

void torch_ltc::populateElementwiseTensorLowerings(TensorLoweringTable &table) {
  // Each argument of an elementwise op may be a dynamic scalar.
  auto runtimeNumbers = llvm::to_vector(llvm::seq<unsigned>(0, 10));
  // Ops with the dtype rule `bool` don't compute in the result's dtype.
  constexpr bool promote = true, promote_float = true, self = true,
                 argument = true, div_mode = true, boolean = false;
#define bool boolean
#define ELEMENTWISE_OP(op, builder, rule, divides)                             \
  table.add(op, lower<&emit##builder, rule>, runtimeNumbers);
#include "torch_ltc/Dialect/Torch/ElementwiseOps.inc"
#undef ELEMENTWISE_OP
#undef bool
}
