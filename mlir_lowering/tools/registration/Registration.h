//===- Registration.h - What the tools know of ----------------*- C++ -*-===//

#ifndef TORCH_LTC_TOOLS_REGISTRATION_H
#define TORCH_LTC_TOOLS_REGISTRATION_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::torch_ltc {

/// MLIR's dialects and the project's.
void registerToolDialects(DialectRegistry &registry);

/// MLIR's passes, the project's, and its pipelines.
void registerToolPasses();

/// One leg of the way of a step.
struct StageStep {
  llvm::StringRef from, to; ///< stages, as in dump folders
  llvm::StringRef pipeline;
  llvm::ArrayRef<llvm::StringRef> passes; ///< the project's, in their order
};

/// From "torch-raw" to "llvm", then the ways by other dialects.
llvm::ArrayRef<StageStep> stageSteps();

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_TOOLS_REGISTRATION_H
