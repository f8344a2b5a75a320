//===- ltc-opt.cpp - The compiler's test driver ---------------------------===//
//
// mlir-opt with the project's dialects and passes: reads a module at any
// stage, runs the passes named on the command line, prints the result.
//
//===----------------------------------------------------------------------===//

#include "torch_ltc/Codegen/Passes.h"
#include "torch_ltc/Conversion/TorchToLinalg/Passes.h"
#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Transforms/Passes.h"
#include "torch_ltc/Transforms/TorchPipeline.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<mlir::torch_ltc::ltc::LtcDialect,
                  mlir::torch_ltc::torch::TorchDialect>();
  mlir::registerAllPasses();
  mlir::torch_ltc::registerTorchToLinalgPasses();
  mlir::torch_ltc::registerLtcTransformsPasses();
  mlir::torch_ltc::registerTorchPipeline();
  mlir::torch_ltc::registerLtcKernelsPasses();
  mlir::torch_ltc::registerLtcCodegenPasses();
  mlir::PassPipelineRegistration<>("ltc-linalg-to-kernels",
                                   "from the linalg stage to the kernels stage",
                                   mlir::torch_ltc::buildKernelsPipeline);
  mlir::PassPipelineRegistration<>("ltc-kernels-to-llvm",
                                   "from scheduled kernels to the LLVM dialect",
                                   mlir::torch_ltc::buildLoopsPipeline);
  mlir::PassPipelineRegistration<>("ltc-kernels-to-llvm-by-bufferization",
                                   "from other kernels to the LLVM dialect",
                                   mlir::torch_ltc::buildBufferizationPipeline);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "torch_ltc compiler driver\n", registry));
}
