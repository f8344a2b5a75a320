//===- TorchPipeline.h - From a traced program to the contract --*- C++ -*-===//

#ifndef TORCH_LTC_TRANSFORMS_TORCHPIPELINE_H
#define TORCH_LTC_TRANSFORMS_TORCHPIPELINE_H

#include "mlir/Pass/PassManager.h"

namespace mlir::torch_ltc {

struct TorchPipelineOptions {
  /// Ops that the target takes as they are ("aten.addmm"): they are neither
  /// decomposed nor refused by the contract.
  std::vector<std::string> legalOps;
  /// If not empty: all ops that the target takes, in place of those that the
  /// op table has a lowering to linalg or a library for. They aren't
  /// decomposed.
  std::vector<std::string> targetOps;
  /// The target is another compiler of the torch dialect: ops that only ours
  /// lowers are decomposed.
  bool portable = false;
};

/// Ops that our own runtime computes whole and others get in parts.
std::vector<std::string> opsOfRuntime();

/// Passes on a module in the torch dialect as it was built; after them it is
/// at the backend contract.
void buildTorchPipeline(OpPassManager &passes,
                        const TorchPipelineOptions &options = {});

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_TRANSFORMS_TORCHPIPELINE_H
