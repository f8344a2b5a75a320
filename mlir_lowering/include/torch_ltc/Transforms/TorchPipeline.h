//===- TorchPipeline.h - From a traced program to the contract --*- C++ -*-===//

#ifndef TORCH_LTC_TRANSFORMS_TORCHPIPELINE_H
#define TORCH_LTC_TRANSFORMS_TORCHPIPELINE_H

#include "mlir/Pass/PassManager.h"

namespace mlir::torch_ltc {

struct TorchPipelineOptions {
  /// Ops that the target supports directly ("aten.addmm"): they are neither
  /// decomposed nor rejected by the contract.
  std::vector<std::string> legalOps;
  /// If not empty, the complete list of the ops that the target supports, in
  /// place of those for which the op table has a lowering to linalg or a
  /// library. Ops in this list aren't decomposed.
  std::vector<std::string> targetOps;
  /// Whether the target is another compiler of the torch dialect. If so, ops
  /// that only our compiler lowers are decomposed.
  bool portable = false;
};

/// Ops that our runtime computes directly, and that are decomposed for other
/// compilers.
std::vector<std::string> getRuntimeLegalOps();

/// Adds the passes that lower a newly built module in the torch dialect to the
/// backend contract.
void buildTorchPipeline(OpPassManager &passes,
                        const TorchPipelineOptions &options = {});

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_TRANSFORMS_TORCHPIPELINE_H
