//===- ComplexFolders.cpp - Views of complex numbers as pairs -------------===//

#include "torch_ltc/Dialect/Torch/TorchOps_complex.h"

using namespace mlir;
using namespace mlir::torch_ltc::torch;

OpFoldResult AtenViewAsRealOp::fold() {
  auto view = getSelf().getDefiningOp<AtenViewAsComplexOp>();
  return view ? view.getSelf() : Value();
}

OpFoldResult AtenViewAsComplexOp::fold() {
  auto view = getSelf().getDefiningOp<AtenViewAsRealOp>();
  return view ? view.getSelf() : Value();
}
