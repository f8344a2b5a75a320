//===- DuplicateProducers.cpp - Cheap ops, one copy for each user ---------===//

#include "torch_ltc/Kernels/FusionDomain.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_DUPLICATEPRODUCERS
#include "torch_ltc/Kernels/Passes.h.inc"

namespace {

/// Whether the body has few operations, all of them cheap: no function calls,
/// no floating-point divisions, and no reads at computed positions.
bool isCheapBody(Block &body) {
  constexpr size_t kMaxOps = 4;
  bool isCheap = body.getOperations().size() <= kMaxOps + 1;
  for (Operation &op : body.without_terminator())
    isCheap &= op.getNumRegions() == 0 && op.getDialect() &&
               (op.getDialect()->getNamespace() == "arith" ||
                isa<linalg::IndexOp>(op)) &&
               !isa<arith::DivFOp, arith::RemFOp>(op);
  return isCheap;
}

/// Whether reading the operands costs each user at most as much as reading the
/// result.
bool readsLittle(linalg::GenericOp op) {
  int64_t read = 0, written = 0;
  for (OpOperand *operand : op.getDpsInputOperands())
    if (!isUniform(operand->get()))
      read += getTensorBytes(operand->get().getType());
  for (Value result : op.getResults())
    written += getTensorBytes(result.getType());
  // A slice reads only the elements that it returns.
  if (op.getNumDpsInputs() == 1 &&
      op.getNumParallelLoops() == op.getNumLoops() &&
      op.getBody()->getOperations().size() == 1)
    read = std::min(read, written);
  return read <= written;
}

/// Whether all operands are accessed in the order of the loops. A permuted copy
/// isn't duplicated, because each of its users would then read with large
/// strides.
bool keepsOrder(linalg::GenericOp op) {
  for (AffineMap map : op.getIndexingMapsArray()) {
    int last = -1;
    for (AffineExpr expr : map.getResults()) {
      for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
        if (expr.isFunctionOfDim(dim)) {
          if (int(dim) < last)
            return false;
          last = dim;
        }
    }
  }
  return true;
}

class DuplicateProducers
    : public impl::DuplicateProducersBase<DuplicateProducers> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> program = findProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    SmallVector<linalg::GenericOp> candidates;
    for (auto op : program->getBody().getOps<linalg::GenericOp>())
      if (op.getNumParallelLoops() == op.getNumLoops() &&
          op.getNumResults() == 1 && FusionDomain::isFusible(op) &&
          isCheapBody(*op.getBody()) && readsLittle(op) && keepsOrder(op))
        candidates.push_back(op);
    // Visit users first, because a duplicated user multiplies the uses of its
    // own producers.
    for (linalg::GenericOp op : llvm::reverse(candidates))
      duplicate(op);
  }

  static void duplicate(linalg::GenericOp op) {
    constexpr unsigned kMaxCopies = 16;
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getUses())
      // Users in loops get no copy, because it would run in each iteration.
      if (isa<linalg::GenericOp>(use.getOwner()) &&
          use.getOwner()->getBlock() == op->getBlock())
        uses.push_back(&use);
    bool hasOthers =
        size_t(std::distance(op->use_begin(), op->use_end())) > uses.size();
    if (uses.size() > kMaxCopies || (uses.size() < 2 && !hasOthers))
      return;
    DenseMap<Operation *, Operation *> copyFor;
    for (OpOperand *use : uses) {
      Operation *user = use->getOwner();
      // The first user keeps the original if all other users get a copy.
      Operation *&copy = copyFor[user];
      if (!copy) {
        if (copyFor.size() == 1 && !hasOthers) {
          copy = op;
        } else {
          OpBuilder builder(user);
          copy = builder.clone(*op);
        }
      }
      use->set(copy->getResult(0));
    }
  }
};

} // namespace
} // namespace mlir::torch_ltc
