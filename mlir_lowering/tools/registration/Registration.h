//===- Registration.h - Dialects and passes of the tools --------*- C++ -*-===//

#ifndef TORCH_LTC_TOOLS_REGISTRATION_H
#define TORCH_LTC_TOOLS_REGISTRATION_H

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::torch_ltc {

/// Registers MLIR's dialects and the project's.
void registerToolDialects(DialectRegistry &registry);

/// Registers MLIR's passes, the project's, and the pipelines below.
void registerToolPasses();

/// A pipeline between two stages.
struct StagePipeline {
  llvm::StringRef from, to; ///< names of stages in stages.def
  llvm::StringRef name;
  llvm::StringRef summary;
  void (*build)(OpPassManager &);

  /// The project's passes in the pipeline, in order.
  llvm::SmallVector<std::string> passNames() const;
};

/// The pipelines from "torch-raw" to "llvm", followed by those to and from
/// other dialects.
llvm::ArrayRef<StagePipeline> stagePipelines();

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_TOOLS_REGISTRATION_H
