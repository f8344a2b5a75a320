//===- TorchToTosa.cpp - The conversion pass and its pipelines ------------===//

#include "torch_ltc/Conversion/TorchToTosa/Passes.h"

#include "../TorchToTensors/TensorConversion.h"
#include "TosaTarget.h"

#include "torch_ltc/Transforms/TorchPipeline.h"

#include "mlir/Conversion/TosaToArith/TosaToArith.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Conversion/TosaToSCF/TosaToSCF.h"
#include "mlir/Conversion/TosaToTensor/TosaToTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_CONVERTTORCHTOTOSAPASS
#include "torch_ltc/Conversion/TorchToTosa/Passes.h.inc"
} // namespace mlir::torch_ltc

using namespace mlir;
using namespace mlir::torch_ltc;

namespace {
struct ConvertTorchToTosaPass
    : torch_ltc::impl::ConvertTorchToTosaPassBase<ConvertTorchToTosaPass> {
  void runOnOperation() override {
    auto makeTarget = [](OpBuilder &builder,
                         Location loc) -> std::unique_ptr<TensorTarget> {
      return std::make_unique<TosaTarget>(builder, loc);
    };
    auto isTosa = [](Operation *op) {
      return isa_and_present<tosa::TosaDialect>(op->getDialect());
    };
    if (failed(convertToTensors(getOperation(), makeTarget, isTosa)))
      signalPassFailure();
  }
};
} // namespace

std::vector<std::string> torch_ltc::torchToTosaLegalOps() {
  return tensorLoweringTable().names();
}

void torch_ltc::buildTorchToTosaPipeline(OpPassManager &passes) {
  TorchPipelineOptions options;
  options.targetOps = torchToTosaLegalOps();
  buildTorchPipeline(passes, options);
  passes.addPass(createConvertTorchToTosaPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

void torch_ltc::buildTosaToLinalgPipeline(OpPassManager &passes) {
  OpPassManager &function = passes.nest<func::FuncOp>();
  function.addPass(createConvertTosaExtremesPass());
  function.addPass(tosa::createTosaToLinalgNamed());
  function.addPass(tosa::createTosaToLinalg());
  function.addPass(createTosaToTensorPass());
  function.addPass(createTosaToArithPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}
