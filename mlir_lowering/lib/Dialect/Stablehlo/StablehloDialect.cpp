//===- StablehloDialect.cpp - The supported ops of StableHLO --------------===//

#include "torch_ltc/Dialect/Stablehlo/StablehloDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::torch_ltc::stablehlo;

#include "torch_ltc/Dialect/Stablehlo/StablehloDialect.cpp.inc"

#define GET_OP_CLASSES
#include "torch_ltc/Dialect/Stablehlo/StablehloOps.cpp.inc"

void StablehloDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "torch_ltc/Dialect/Stablehlo/StablehloOps.cpp.inc"
      >();
}

Operation *StablehloDialect::materializeConstant(OpBuilder &builder,
                                                 Attribute value, Type type,
                                                 Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }
