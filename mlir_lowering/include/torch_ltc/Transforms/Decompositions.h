//===- Decompositions.h - Decompositions of compound torch ops --*- C++ -*-===//
//
// Rewrite patterns by op family. Each pattern replaces one op by elementwise
// ops, reductions, views, gathers and matrix products, which all targets
// support. The formulas are those of torch's CPU kernels; 16-bit floats are
// computed in float32 and rounded once, at the end.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_TRANSFORMS_DECOMPOSITIONS_H
#define TORCH_LTC_TRANSFORMS_DECOMPOSITIONS_H

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::torch_ltc {

struct DecompositionOptions {
  /// Ops that the target supports directly ("aten._softmax"); they get no
  /// pattern.
  llvm::StringSet<> legalOps;
  /// Whether the target is another compiler. If so, ops that only our compiler
  /// lowers get a pattern as well.
  bool portable = false;

  /// Whether the target supports the op with the full name `name`
  /// ("torch.aten._softmax") directly.
  bool isLegal(StringRef name) const {
    name.consume_front("torch.");
    return legalOps.contains(name);
  }
};

void populateAttentionDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options);
void populateBatchNormDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options);
void populateCheckDecompositionPatterns(RewritePatternSet &patterns,
                                        const DecompositionOptions &options);
void populateComplexDecompositionPatterns(RewritePatternSet &patterns);
void populateConvolutionDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options);
void populateDataMovementDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options);
void populateElementwiseDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options);
void populateIndexingDecompositionPatterns(RewritePatternSet &patterns,
                                           const DecompositionOptions &options);
void populateLinearDecompositionPatterns(RewritePatternSet &patterns,
                                         const DecompositionOptions &options);
void populateLossDecompositionPatterns(RewritePatternSet &patterns,
                                       const DecompositionOptions &options);
void populateNllLossDecompositionPatterns(RewritePatternSet &patterns,
                                          const DecompositionOptions &options);
void populateNormalizationDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options);
void populatePortableDecompositionPatterns(RewritePatternSet &patterns,
                                           const DecompositionOptions &options);
void populateRecurrenceDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options);
void populateReductionDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options);
void populateSoftmaxDecompositionPatterns(RewritePatternSet &patterns,
                                          const DecompositionOptions &options);

/// All of the patterns above.
void populateDecompositionPatterns(RewritePatternSet &patterns,
                                   const DecompositionOptions &options);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_TRANSFORMS_DECOMPOSITIONS_H
