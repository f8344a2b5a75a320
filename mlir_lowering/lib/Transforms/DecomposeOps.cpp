//===- DecomposeOps.cpp - The pass ltc-mlir-decompose-ops -----------------===//

#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Support/UserLocation.h"
#include "torch_ltc/Transforms/Decompositions.h"
#include "torch_ltc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_DECOMPOSEOPSPASS
#include "torch_ltc/Transforms/Passes.h.inc"
} // namespace mlir::torch_ltc

using namespace mlir;
using namespace mlir::torch_ltc;

namespace {

// Records, for each op that remains, why its pattern didn't match.
class FailureListener : public RewriterBase::Listener {
public:
  void notifyPatternBegin(const Pattern &, Operation *op) override {
    current = op;
  }
  void notifyMatchFailure(Location,
                          function_ref<void(Diagnostic &)> reason) override {
    if (!current)
      return;
    Diagnostic text(current->getLoc(), DiagnosticSeverity::Note);
    reason(text);
    failures[current] = text.str();
  }
  void notifyOperationErased(Operation *op) override {
    failures.erase(op);
    if (current == op)
      current = nullptr;
  }

  llvm::MapVector<Operation *, std::string> failures;

private:
  Operation *current = nullptr;
};

class DecomposeOps
    : public torch_ltc::impl::DecomposeOpsPassBase<DecomposeOps> {
public:
  using DecomposeOpsPassBase::DecomposeOpsPassBase;

  LogicalResult initialize(MLIRContext *context) override {
    DecompositionOptions options;
    for (const std::string &name : legalOps) {
      if (!RegisteredOperationName::lookup("torch." + name, context))
        return emitError(UnknownLoc::get(context))
               << "legal-ops names '" << name
               << "', which the torch dialect doesn't define";
      options.legalOps.insert(name);
    }
    options.portable = portable;
    RewritePatternSet set(context);
    populateDecompositionPatterns(set, options);
    // Decomposing a split makes a ListConstruct of slices; these patterns fold
    // it with the ListUnpack that uses it.
    torch::PrimListUnpackOp::getCanonicalizationPatterns(set, context);
    patterns = std::move(set);
    return success();
  }

  void runOnOperation() override {
    FailureListener listener;
    GreedyRewriteConfig config;
    config.setListener(&listener);
    if (failed(applyPatternsGreedily(getOperation(), patterns, config)))
      return signalPassFailure();
    for (auto &[op, reason] : listener.failures)
      op->emitError() << "'" << op->getName().getStringRef() << "'"
                      << userLocationSuffix(op->getLoc())
                      << " cannot be decomposed: " << reason;
    if (!listener.failures.empty())
      signalPassFailure();
  }

private:
  FrozenRewritePatternSet patterns;
};

} // namespace

void mlir::torch_ltc::populateDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  populateAttentionDecompositionPatterns(patterns, options);
  populateBatchNormDecompositionPatterns(patterns, options);
  populateCheckDecompositionPatterns(patterns, options);
  populateIndexingDecompositionPatterns(patterns, options);
  populateComplexDecompositionPatterns(patterns);
  populateConvolutionDecompositionPatterns(patterns, options);
  populateDataMovementDecompositionPatterns(patterns, options);
  populateElementwiseDecompositionPatterns(patterns, options);
  populateLinearDecompositionPatterns(patterns, options);
  populateLossDecompositionPatterns(patterns, options);
  populateNllLossDecompositionPatterns(patterns, options);
  populateNormalizationDecompositionPatterns(patterns, options);
  if (options.portable)
    populatePortableDecompositionPatterns(patterns, options);
  populateRecurrenceDecompositionPatterns(patterns, options);
  populateReductionDecompositionPatterns(patterns, options);
  populateSoftmaxDecompositionPatterns(patterns, options);
}
