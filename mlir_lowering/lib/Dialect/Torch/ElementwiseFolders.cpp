//===- ElementwiseFolders.cpp - Copies that change nothing ----------------===//
//
// Tensors are values: a copy, alias or cast whose result has the type of its
// operand is the operand.
//
//===----------------------------------------------------------------------===//

#include "torch_ltc/Dialect/Torch/TorchOps_elementwise.h"

using namespace mlir;
using namespace mlir::torch_ltc::torch;

static OpFoldResult foldSameType(Value self, Value result) {
  bool isSame = cast<ValueTensorType>(self.getType()).isStatic() &&
                self.getType() == result.getType();
  return isSame ? self : Value();
}

OpFoldResult AtenCloneOp::fold() {
  return foldSameType(getSelf(), getResult());
}
OpFoldResult AtenAliasOp::fold() {
  return foldSameType(getSelf(), getResult());
}
OpFoldResult AtenDetachOp::fold() {
  return foldSameType(getSelf(), getResult());
}
OpFoldResult AtenLiftFreshCopyOp::fold() {
  return foldSameType(getSelf(), getResult());
}
OpFoldResult Aten_ToCopyOp::fold() {
  return foldSameType(getSelf(), getResult());
}
