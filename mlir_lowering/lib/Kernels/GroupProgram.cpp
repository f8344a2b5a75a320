//===- GroupProgram.cpp - The whole program as one group ------------------===//

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_GROUPPROGRAM
#include "torch_ltc/Kernels/Passes.h.inc"

namespace {

class GroupProgram : public impl::GroupProgramBase<GroupProgram> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> program = findProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    // Remove checks: a check in the middle of the group would have to run
    // inside the kernel.
    program->walk([](ltc::CheckBoundsOp check) {
      check.replaceAllUsesWith(check.getIndices());
      check.erase();
    });
    Attribute group = Builder(&getContext()).getI64IntegerAttr(0);
    for (Operation &op : program->getBody().front().without_terminator()) {
      OpRole role = getRole(&op);
      if (role == OpRole::Compute || role == OpRole::View)
        op.setAttr(kGroupAttr, group);
    }
  }
};

} // namespace
} // namespace mlir::torch_ltc
