//===- CompileLinalgModule.cpp - linalg stage to executable ---------------===//

#include "torch_ltc/Codegen/CompileLinalgModule.h"

#include "ExecutableBuilder.h"
#include "ExecutableBytes.h"
#include "KernelSet.h"
#include "PlanText.h"

#include "torch_ltc/Codegen/Passes.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"

#include "llvm/Config/llvm-config.h"

#include <chrono>

using namespace mlir;
using namespace mlir::torch_ltc;
namespace runtime = ::torch_ltc::runtime;

namespace {

class SecondsTimer {
public:
  double elapsed() const {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
};

std::string printModule(ModuleOp module, bool locations) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  if (locations)
    flags.enableDebugInfo(true, false);
  module->print(stream, flags);
  return text;
}

} // namespace

FailureOr<BufferPlan>
mlir::torch_ltc::lowerToKernels(ModuleOp module,
                                const LinalgCompileOptions &options) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  manager.enableVerifier(options.verify);
  if (options.reference)
    buildReferencePipeline(manager);
  else
    buildKernelsPipeline(manager);
  FailureOr<func::FuncOp> program = findProgram(module);
  if (failed(program) || failed(manager.run(module)))
    return failure();
  FailureOr<BufferPlan> plan = BufferPlan::read(*program);
  if (options.stageText && succeeded(plan)) {
    options.stageText("kernels", printModule(module, options.printLocations));
    options.stageText("plan", planText(*program, *plan));
  }
  return plan;
}

void mlir::torch_ltc::describeExecutable(const KernelSet &kernels,
                                         const LinalgCompileOptions &options,
                                         runtime::Executable &executable) {
  executable.set_format_version(runtime::FORMAT_VERSION);
  executable.set_producer(
      ("torch_ltc codegen " + kCodegenVersion + ", LLVM " + LLVM_VERSION_STRING)
          .str());
  executable.set_cpu(kernels.getCpu().name + " " + kernels.getCpu().features);
  executable.set_name(options.programName);
}

FailureOr<std::string> mlir::torch_ltc::compileLinalgModule(
    ModuleOp module, const LinalgCompileOptions &options,
    const KernelObjectCache &cache, LinalgCompileStatistics &statistics) {
  SecondsTimer kernelsTimer;
  FailureOr<BufferPlan> plan = lowerToKernels(module, options);
  if (failed(plan))
    return failure();
  statistics.kernelsSeconds = kernelsTimer.elapsed();

  SecondsTimer llvmTimer;
  func::FuncOp program = *findProgram(module);
  runtime::Executable executable;
  KernelSet kernels(module, options, cache, executable);
  DenseMap<Operation *, unsigned> kernelOfCall;
  for (auto call : program.getBody().getOps<ltc::KernelCallOp>())
    kernelOfCall[call] = kernels.add(call);
  if (failed(kernels.compile()))
    return failure();
  statistics.kernels = executable.kernels_size();
  statistics.kernelsCompiled = kernels.numCompiled();
  describeExecutable(kernels, options, executable);
  if (failed(
          ExecutableBuilder(program, *plan, kernelOfCall, executable).build()))
    return failure();
  statistics.llvmSeconds = llvmTimer.elapsed();
  statistics.commands = executable.commands_size();
  if (options.stageText) {
    options.stageText("llvm", kernels.getTexts().llvm);
    options.stageText("asm", kernels.getTexts().assembly);
  }
  return runtime::serializeExecutable(executable);
}
