//===- HostCall.cpp - Ops that PyTorch's own kernels compute --------------===//
//
// Lowers the op table's rows with lower = "host" to ltc.host_call. Each
// argument becomes an attribute, in the order of the schema; a tensor or a
// dynamic scalar also becomes an input, and its attribute is its dtype.
//
//===----------------------------------------------------------------------===//

#include "HostCall.h"

#include "torch_ltc/Dialect/Torch/TorchOps.h"

using namespace mlir;
using namespace mlir::torch_ltc;

static Attribute listAttribute(OpLowering &op, Value argument,
                               SmallVector<Value> &tensors) {
  auto list = argument.getDefiningOp<torch::PrimListConstructOp>();
  auto elements = list.getElements();
  Builder &b = op.builder;
  if (llvm::any_of(elements.getTypes(), torch::isTensorType)) {
    SmallVector<Attribute> dtypes; // unit for an element that is none
    for (auto [dtype, tensor] : llvm::zip_equal(op.tensorListDtypes(argument),
                                                op.tensorList(argument))) {
      dtypes.push_back(tensor ? TypeAttr::get(dtype)
                              : Attribute(b.getUnitAttr()));
      if (tensor)
        tensors.push_back(tensor);
    }
    return b.getArrayAttr(dtypes);
  }
  if (!elements.empty() && isa<torch::FloatType>(elements.front().getType())) {
    SmallVector<double> numbers;
    for (Value element : elements)
      numbers.push_back(element.getDefiningOp<torch::ConstantFloatOp>()
                            .getValueAttr()
                            .getValueAsDouble());
    return b.getDenseF64ArrayAttr(numbers);
  }
  return b.getDenseI64ArrayAttr(op.integers(argument));
}

/// Makes the dynamic scalar an input of rank 0.
static Attribute scalarAttribute(OpLowering &op, Value argument,
                                 SmallVector<Value> &tensors) {
  Builder &b = op.builder;
  Type dtype = b.getF64Type();
  if (isa<torch::IntType>(argument.getType()))
    dtype = b.getIntegerType(64, /*isSigned=*/true);
  Value scalar = op.number(argument).materialize(op.builder, op.loc, dtype);
  tensors.push_back(op.tensors.fill({}, scalar));
  return TypeAttr::get(dtype);
}

static Attribute argumentAttribute(OpLowering &op, Value argument,
                                   SmallVector<Value> &tensors) {
  Builder &b = op.builder;
  Type type = argument.getType();
  if (op.isNone(argument))
    return b.getUnitAttr();
  if (op.isTensor(argument)) {
    tensors.push_back(op.tensor(argument));
    return TypeAttr::get(op.dtype(argument));
  }
  if (op.isParameter(argument))
    return scalarAttribute(op, argument, tensors);
  if (isa<torch::ListType>(type))
    return listAttribute(op, argument, tensors);
  if (isa<torch::StringType>(type))
    return b.getStringAttr(op.string(argument));
  if (isa<torch::BoolType>(type))
    return b.getBoolAttr(op.boolean(argument));
  if (isa<torch::FloatType>(type))
    return b.getF64FloatAttr(op.floating(argument));
  return b.getI64IntegerAttr(op.integer(argument));
}

LogicalResult torch_ltc::lowerHostCall(OpLowering &op) {
  SmallVector<Value> tensors;
  SmallVector<Attribute> arguments, dtypes;
  for (Value argument : op.getArguments())
    arguments.push_back(argumentAttribute(op, argument, tensors));
  SmallVector<Type> results;
  for (unsigned i = 0; i < op.op->getNumResults(); ++i) {
    results.push_back(op.resultType(i));
    dtypes.push_back(TypeAttr::get(op.resultDtype(i)));
  }
  Builder &b = op.builder;
  auto [library, name] = StringRef(op.name).split('.');
  auto call = ltc::HostCallOp::create(
      op.builder, op.loc, results, (library + "::" + name).str(), tensors,
      b.getArrayAttr(arguments), b.getArrayAttr(dtypes));
  return op.replaceWith(call.getOutputs());
}

void torch_ltc::populateHostLowerings(LoweringTable &table) {
#define HOST_OP(name, ...) table.add(name, lowerHostCall, {__VA_ARGS__});
#include "torch_ltc/Dialect/Torch/HostOps.inc"
#undef HOST_OP
  // These ops are decomposed only for other compilers.
  for (const char *name :
       {"torch_ltc.lstm", "torch_ltc.lstm_backward", "torch_ltc.gru",
        "torch_ltc.gru_backward", "torch_ltc.rnn", "torch_ltc.rnn_backward"})
    table.add(name, lowerHostCall);
}
