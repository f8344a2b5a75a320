//===- Registration.cpp - Dialects and passes of the tools ----------------===//

#include "Registration.h"

#include "torch_ltc/Codegen/Passes.h"
#include "torch_ltc/Conversion/TorchToLinalg/Passes.h"
#include "torch_ltc/Conversion/TorchToStablehlo/Passes.h"
#include "torch_ltc/Conversion/TorchToTosa/Passes.h"
#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Dialect/Stablehlo/StablehloDialect.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Symbolic/Passes.h"
#include "torch_ltc/Transforms/Passes.h"
#include "torch_ltc/Transforms/TorchPipeline.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using llvm::StringRef;

void torch_ltc::registerToolDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<ltc::LtcDialect, stablehlo::StablehloDialect,
                  torch::TorchDialect>();
}

static void buildContractPipeline(OpPassManager &passes) {
  buildTorchPipeline(passes);
}

static void buildExportPipeline(OpPassManager &passes) {
  passes.addPass(createExportOperatorsPass());
}

static void buildLinalgPipeline(OpPassManager &passes) {
  buildTorchToLinalgPipeline(passes);
}

static void buildPortableLinalgPipeline(OpPassManager &passes) {
  buildTorchToLinalgPipeline(passes, /*portable=*/true);
}

llvm::ArrayRef<StagePipeline> torch_ltc::stagePipelines() {
  static const StagePipeline pipelines[] = {
      {"torch-raw", "torch", "ltc-torch-to-contract", "to the backend contract",
       buildContractPipeline},
      {"torch", "torch", "ltc-torch-to-operators",
       "for torch-mlir: ops that it lacks become torch.operator",
       buildExportPipeline},
      {"torch", "linalg", "ltc-torch-to-linalg", "linalg on tensors",
       buildLinalgPipeline},
      {"torch", "linalg", "ltc-torch-to-portable-linalg",
       "without library and host calls", buildPortableLinalgPipeline},
      {"linalg", "kernels", "ltc-linalg-to-kernels",
       "commands, scheduled kernels and the buffer plan", buildKernelsPipeline},
      {"linalg", "kernels", "ltc-linalg-to-reference",
       "one kernel without library calls, for tests", buildReferencePipeline},
      {"kernels", "llvm", "ltc-kernels-to-llvm", "for kernels with a schedule",
       buildLoopsPipeline},
      {"kernels", "llvm", "ltc-kernels-to-llvm-by-bufferization",
       "for other kernels, such as scatters and pads",
       buildBufferizationPipeline},
      {"torch-raw", "tosa", "ltc-torch-to-tosa", "for other compilers",
       buildTorchToTosaPipeline},
      {"tosa", "linalg", "ltc-tosa-to-linalg", "linalg on tensors",
       buildTosaToLinalgPipeline},
      {"torch-raw", "stablehlo", "ltc-torch-to-stablehlo",
       "for other compilers", buildTorchToStablehloPipeline},
  };
  return pipelines;
}

llvm::SmallVector<std::string> StagePipeline::passNames() const {
  OpPassManager passes(ModuleOp::getOperationName());
  build(passes);
  std::string text;
  llvm::raw_string_ostream stream(text);
  passes.printAsTextualPipeline(stream);
  llvm::SmallVector<std::string> names;
  static constexpr StringRef prefix = "ltc-mlir-";
  for (StringRef rest(text); !rest.empty();) {
    rest = rest.drop_front(std::min(rest.find(prefix), rest.size()));
    StringRef name =
        rest.take_while([](char c) { return llvm::isAlpha(c) || c == '-'; });
    if (!name.empty() && !llvm::is_contained(names, name))
      names.push_back(name.str());
    rest = rest.drop_front(name.size());
  }
  return names;
}

void torch_ltc::registerToolPasses() {
  registerAllPasses();
  registerTorchToLinalgPasses();
  registerTorchToStablehloPasses();
  registerTorchToTosaPasses();
  registerLtcTransformsPasses();
  registerLtcKernelsPasses();
  registerLtcSymbolicPasses();
  registerLtcCodegenPasses();
  for (const StagePipeline &pipeline : stagePipelines())
    PassPipelineRegistration<>(pipeline.name, pipeline.summary, pipeline.build);
}
