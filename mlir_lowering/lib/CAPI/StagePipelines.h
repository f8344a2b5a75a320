//===- StagePipelines.h - From a traced program to a stage ------*- C++ -*-===//

#ifndef TORCH_LTC_LIB_CAPI_STAGEPIPELINES_H
#define TORCH_LTC_LIB_CAPI_STAGEPIPELINES_H

#include "torch_ltc-c/lowering.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::torch_ltc {

/// Adds the passes from stage torch-raw to a stage that other compilers read.
void buildStagePipeline(StringRef stage, const LtcStageOptions &options,
                        OpPassManager &passes);

/// Writes the text or bytecode of a module to `result`.
LogicalResult writeStage(ModuleOp module, const LtcStageOptions &options,
                         std::string &result);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CAPI_STAGEPIPELINES_H
