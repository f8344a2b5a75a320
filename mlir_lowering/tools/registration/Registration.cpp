//===- Registration.cpp - What the tools know of --------------------------===//

#include "Registration.h"

#include "torch_ltc/Codegen/Passes.h"
#include "torch_ltc/Conversion/TorchToLinalg/Passes.h"
#include "torch_ltc/Conversion/TorchToStablehlo/Passes.h"
#include "torch_ltc/Conversion/TorchToTosa/Passes.h"
#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Dialect/Stablehlo/StablehloDialect.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Transforms/Passes.h"
#include "torch_ltc/Transforms/TorchPipeline.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using llvm::StringRef;

void torch_ltc::registerToolDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<ltc::LtcDialect, stablehlo::StablehloDialect,
                  torch::TorchDialect>();
}

static void buildLinalgPipeline(OpPassManager &passes) {
  passes.addPass(createConvertTorchToLinalgPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

void torch_ltc::registerToolPasses() {
  registerAllPasses();
  registerTorchToLinalgPasses();
  registerTorchToStablehloPasses();
  registerTorchToStablehloPipeline();
  registerTorchToTosaPasses();
  registerTorchToTosaPipelines();
  registerLtcTransformsPasses();
  registerTorchPipeline();
  registerLtcKernelsPasses();
  registerLtcCodegenPasses();
  PassPipelineRegistration<>("ltc-torch-to-linalg",
                             "from the torch stage to the linalg stage",
                             buildLinalgPipeline);
  PassPipelineRegistration<>("ltc-linalg-to-kernels",
                             "from the linalg stage to the kernels stage",
                             buildKernelsPipeline);
  PassPipelineRegistration<>("ltc-kernels-to-llvm",
                             "from scheduled kernels to the LLVM dialect",
                             buildLoopsPipeline);
  PassPipelineRegistration<>("ltc-kernels-to-llvm-by-bufferization",
                             "from other kernels to the LLVM dialect",
                             buildBufferizationPipeline);
}

llvm::ArrayRef<StageStep> torch_ltc::stageSteps() {
  static const StringRef toTorch[] = {
      "ltc-mlir-import-operators", "ltc-mlir-decompose-ops",
      "ltc-mlir-verify-backend-contract", "ltc-mlir-export-operators"};
  static const StringRef toLinalg[] = {"ltc-mlir-convert-torch-to-linalg",
                                       "ltc-mlir-expand-library-calls"};
  static const StringRef toKernels[] = {"ltc-mlir-select-library-calls",
                                        "ltc-mlir-combine-products",
                                        "ltc-mlir-normalize-ops",
                                        "ltc-mlir-join-insertions",
                                        "ltc-mlir-split-reductions",
                                        "ltc-mlir-duplicate-producers",
                                        "ltc-mlir-group-ops",
                                        "ltc-mlir-recompute-values",
                                        "ltc-mlir-group-program",
                                        "ltc-mlir-outline-kernels",
                                        "ltc-mlir-deduplicate-kernels"};
  static const StringRef toLlvm[] = {
      "ltc-mlir-lower-to-loops", "ltc-mlir-bind-buffers",
      "ltc-mlir-lower-copies", "ltc-mlir-expand-math"};
  static const StringRef toTosa[] = {"ltc-mlir-convert-torch-to-tosa"};
  static const StringRef fromTosa[] = {"ltc-mlir-convert-tosa-extremes"};
  static const StringRef toStablehlo[] = {
      "ltc-mlir-convert-torch-to-stablehlo"};
  static const StageStep steps[] = {
      {"torch-raw", "torch", "ltc-torch-to-contract", toTorch},
      {"torch", "linalg", "ltc-torch-to-linalg", toLinalg},
      {"linalg", "kernels", "ltc-linalg-to-kernels", toKernels},
      {"kernels", "llvm", "ltc-kernels-to-llvm", toLlvm},
      {"torch-raw", "tosa", "ltc-torch-to-tosa", toTosa},
      {"tosa", "linalg", "ltc-tosa-to-linalg", fromTosa},
      {"torch-raw", "stablehlo", "ltc-torch-to-stablehlo", toStablehlo},
  };
  return steps;
}
