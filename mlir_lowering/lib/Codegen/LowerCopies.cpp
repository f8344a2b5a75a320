//===- LowerCopies.cpp - Lowering of memref.copy to loops -----------------===//

#include "torch_ltc/Codegen/Passes.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_LOWERCOPIES
#include "torch_ltc/Codegen/Passes.h.inc"

namespace {

class LowerCopies : public impl::LowerCopiesBase<LowerCopies> {
  void runOnOperation() override {
    getOperation().walk([](memref::CopyOp copy) {
      OpBuilder builder(copy);
      linalg::CopyOp::create(builder, copy.getLoc(), copy.getSource(),
                             copy.getTarget());
      copy.erase();
    });
  }
};

} // namespace
} // namespace mlir::torch_ltc
