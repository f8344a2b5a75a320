//===- TorchDialect.cpp - Registration of the torch dialect ---------------===//

#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Dialect/Torch/TorchTypes.h"

using namespace mlir;
using namespace mlir::torch_ltc::torch;

#include "torch_ltc/Dialect/Torch/TorchDialect.cpp.inc"

void TorchDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "torch_ltc/Dialect/Torch/TorchOps.cpp.inc"
      >();
  registerAtenOps();
}

Operation *TorchDialect::materializeConstant(OpBuilder &builder,
                                             Attribute value, Type type,
                                             Location loc) {
  if (isa<torch::NoneType>(type))
    return ConstantNoneOp::create(builder, loc, type);
  if (auto boolean = dyn_cast<BoolAttr>(value); boolean && isBoolType(type))
    return ConstantBoolOp::create(builder, loc, type, boolean);
  if (auto integer = dyn_cast<IntegerAttr>(value); integer && isIntType(type))
    return ConstantIntOp::create(builder, loc, type, integer);
  if (auto number = dyn_cast<FloatAttr>(value); number && isFloatType(type))
    return ConstantFloatOp::create(builder, loc, type, number);
  if (auto text = dyn_cast<StringAttr>(value)) {
    if (isa<StringType>(type))
      return ConstantStrOp::create(builder, loc, type, text);
    if (isa<DeviceType>(type))
      return ConstantDeviceOp::create(builder, loc, type, text);
  }
  auto elements = dyn_cast<ElementsAttr>(value);
  auto tensor = dyn_cast<ValueTensorType>(type);
  if (elements && tensor && tensor.isStatic() &&
      elements.getShapedType() == tensor.getLiteralType())
    return ValueTensorLiteralOp::create(builder, loc, type, elements);
  return nullptr;
}
