//===- ElementwiseFolders.cpp - Copies that change nothing ----------------===//
//
// Tensors have value semantics, so a copy, alias or cast folds to its operand
// if the result has the operand's type.
//
//===----------------------------------------------------------------------===//

#include "torch_ltc/Dialect/Torch/TorchOps_elementwise.h"

using namespace mlir;
using namespace mlir::torch_ltc::torch;

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
