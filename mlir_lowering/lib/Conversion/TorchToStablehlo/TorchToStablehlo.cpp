//===- TorchToStablehlo.cpp - The conversion pass and its pipeline --------===//

#include "torch_ltc/Conversion/TorchToStablehlo/Passes.h"

#include "../TorchToTensors/TensorConversion.h"
#include "StablehloTarget.h"

#include "torch_ltc/Transforms/TorchPipeline.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_CONVERTTORCHTOSTABLEHLOPASS
#include "torch_ltc/Conversion/TorchToStablehlo/Passes.h.inc"
} // namespace mlir::torch_ltc

using namespace mlir;
using namespace mlir::torch_ltc;

/// The name of the function at which runners of StableHLO programs start.
static constexpr StringLiteral kEntry = "main";

namespace {
struct ConvertTorchToStablehloPass
    : torch_ltc::impl::ConvertTorchToStablehloPassBase<
          ConvertTorchToStablehloPass> {
  void runOnOperation() override {
    auto makeTarget = [](OpBuilder &builder,
                         Location loc) -> std::unique_ptr<TensorTarget> {
      return std::make_unique<StablehloTarget>(builder, loc);
    };
    auto isStablehlo = [](Operation *op) {
      return isa_and_present<stablehlo::StablehloDialect>(op->getDialect());
    };
    if (failed(convertToTensors(getOperation(), makeTarget, isStablehlo)))
      return signalPassFailure();
    auto functions = getOperation().getOps<func::FuncOp>();
    if (llvm::hasSingleElement(functions))
      (*functions.begin()).setName(kEntry);
  }
};
} // namespace

std::vector<std::string> torch_ltc::torchToStablehloLegalOps() {
  return tensorLoweringTable().names();
}

void torch_ltc::buildTorchToStablehloPipeline(OpPassManager &passes) {
  TorchPipelineOptions options;
  options.targetOps = torchToStablehloLegalOps();
  buildTorchPipeline(passes, options);
  passes.addPass(createConvertTorchToStablehloPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}
