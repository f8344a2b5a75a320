//===- SeparateConstants.cpp - One constant for each use ------------------===//

#include "torch_ltc/Support/SeparateConstants.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

void torch_ltc::separateConstants(Region &region) {
  SetVector<Operation *> constants;
  region.walk([&](Operation *op) {
    Attribute value;
    if (matchPattern(op, m_Constant(&value)) && !isa<ElementsAttr>(value))
      constants.insert(op);
  });
  region.walk([&](Operation *user) {
    OpBuilder builder(user);
    for (OpOperand &operand : user->getOpOperands()) {
      Operation *constant = operand.get().getDefiningOp();
      if (constant && constants.contains(constant))
        operand.set(builder.clone(*constant)->getResult(0));
    }
  });
  for (Operation *constant : constants)
    constant->erase();
}
