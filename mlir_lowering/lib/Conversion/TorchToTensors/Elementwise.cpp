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

static LogicalResult lowerElementwise(TensorLowering &op, ScalarEmitter emitter,
                                      bool inResultDtype) {
  SmallVector<Value> tensors = elementwiseTensors(op), inputs;
  SmallVector<Type> types;
  for (Value tensor : tensors) {
    inputs.push_back(op.tensor(tensor));
    types.push_back(storageTypeOf(op.dtype(tensor)));
  }
  Type common = inResultDtype ? op.resultDtype() : resultTypeOfOperands(op);
  Value result = op.compute(
      op.resultSizes(), inputs,
      [&](OpBuilder &nested, OpLowering &inside, ValueRange arguments) {
        SmallVector<Value> elements(op.getArguments().size());
        for (auto [element, tensor] : llvm::zip(arguments, tensors))
          elements[op.positionOf(tensor)] = element;
        ElementwiseBody body(nested, inside, common, inResultDtype, elements);
        Value value = emitter(body);
        if (value && inResultDtype)
          value = body.convert(value, body.dtype, op.resultDtype());
        return value;
      },
      types);
  return op.replaceWith(result);
}

template <typename Arguments, Value (*emit)(ElementwiseBody &, Arguments),
          bool inResultDtype>
static LogicalResult lower(TensorLowering &op) {
  if (Value unchanged = unchangedOperand(op, Arguments(op.getArguments())))
    return op.replaceWith(op.tensor(unchanged));
  return lowerElementwise(op, emitScalar<Arguments, emit>, inResultDtype);
}

void torch_ltc::populateElementwiseTensorLowerings(TensorLoweringTable &table) {
  // Each argument of an elementwise op may be a dynamic scalar.
  auto dynamicScalars = llvm::to_vector(llvm::seq<unsigned>(0, 10));
  // Ops with the dtype rule `bool` don't compute in the result's dtype.
  constexpr bool promote = true, promote_float = true, self = true,
                 argument = true, div_mode = true, boolean = false;
#define bool boolean
#define ELEMENTWISE_OP(op, builder, rule, divides)                             \
  table.add(op, lower<builder##Arguments, &emit##builder, rule>,               \
            dynamicScalars);
#include "torch_ltc/Dialect/Torch/ElementwiseOps.inc"
#undef ELEMENTWISE_OP
#undef bool
}
