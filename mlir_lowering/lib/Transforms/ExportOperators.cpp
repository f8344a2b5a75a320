//===- ExportOperators.cpp - Ops that torch-mlir lacks --------------------===//

#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Transforms/Passes.h"

#include "llvm/ADT/StringSet.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_EXPORTOPERATORSPASS
#include "torch_ltc/Transforms/Passes.h.inc"
} // namespace mlir::torch_ltc

using namespace mlir;
using namespace mlir::torch_ltc::torch;

static bool isMissingInTorchMlir(Operation *op) {
  static const llvm::StringSet<> names = {
#define TORCH_MLIR_MISSING_OP(name) name,
#include "torch_ltc/Dialect/Torch/TorchMlirMissingOps.inc"
#undef TORCH_MLIR_MISSING_OP
  };
  return names.contains(op->getName().getStringRef());
}

namespace {
struct ExportOperatorsPass
    : torch_ltc::impl::ExportOperatorsPassBase<ExportOperatorsPass> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (!isMissingInTorchMlir(op))
        return;
      OpBuilder builder(op);
      auto exported =
          OperatorOp::create(builder, op->getLoc(), op->getResultTypes(),
                             op->getName().getStringRef(), op->getOperands());
      op->replaceAllUsesWith(exported);
      op->erase();
    });
  }
};
} // namespace
