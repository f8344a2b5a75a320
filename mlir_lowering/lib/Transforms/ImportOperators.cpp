//===- ImportOperators.cpp - torch.operator to the dialect's ops ----------===//

#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Transforms/Passes.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_IMPORTOPERATORSPASS
#include "torch_ltc/Transforms/Passes.h.inc"
} // namespace mlir::torch_ltc

using namespace mlir;
using namespace mlir::torch_ltc::torch;

namespace {
struct ImportOperatorsPass
    : torch_ltc::impl::ImportOperatorsPassBase<ImportOperatorsPass> {
  void runOnOperation() override {
    getOperation()->walk([](OperatorOp op) {
      OperationName name(op.getName(), op.getContext());
      if (!name.isRegistered())
        return;
      OpBuilder builder(op);
      OperationState state(op.getLoc(), name);
      state.addOperands(op.getArguments());
      state.addTypes(op.getResultTypes());
      op->replaceAllUsesWith(builder.create(state));
      op->erase();
    });
  }
};
} // namespace
