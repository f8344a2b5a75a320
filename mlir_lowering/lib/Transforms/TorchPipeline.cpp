//===- TorchPipeline.cpp - From a traced program to the contract ----------===//

#include "torch_ltc/Transforms/TorchPipeline.h"
#include "torch_ltc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::torch_ltc;

std::vector<std::string> torch_ltc::getRuntimeLegalOps() {
  return {"torch_ltc.attention", "torch_ltc.attention_backward",
          "torch_ltc.gru",       "torch_ltc.gru_backward",
          "torch_ltc.lstm",      "torch_ltc.lstm_backward",
          "torch_ltc.rnn",       "torch_ltc.rnn_backward"};
}

void torch_ltc::buildTorchPipeline(OpPassManager &passes,
                                   const TorchPipelineOptions &options) {
  passes.addPass(createImportOperatorsPass());
  // No-op views and casts hide operands from decompositions, which also leave
  // such views and casts. Therefore canonicalization runs before and after the
  // decompositions.
  passes.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  DecomposeOpsPassOptions decompose;
  decompose.legalOps.assign(options.legalOps.begin(), options.legalOps.end());
  decompose.legalOps.append(options.targetOps.begin(), options.targetOps.end());
  decompose.portable = options.portable;
  passes.addNestedPass<func::FuncOp>(createDecomposeOpsPass(decompose));
  passes.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  passes.addNestedPass<func::FuncOp>(createCSEPass());
  VerifyBackendContractPassOptions contract;
  contract.legalOps.assign(options.legalOps.begin(), options.legalOps.end());
  contract.targetOps.assign(options.targetOps.begin(), options.targetOps.end());
  passes.addPass(createVerifyBackendContractPass(contract));
}
