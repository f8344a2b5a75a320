//===- Compile.cpp - Stages and compilation of a program ------------------===//

#include "ProgramCompiler.h"
#include "torch_ltc-c/runtime.h"
#include "torch_ltc/Conversion/TorchToLinalg/Passes.h"
#include "torch_ltc/Conversion/TorchToTosa/Passes.h"
#include "torch_ltc/Dialect/Stablehlo/StablehloDialect.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Transforms/Passes.h"
#include "torch_ltc/Transforms/TorchPipeline.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <chrono>

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

std::string torch_ltc::printModule(ModuleOp module, bool printLocations) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  if (printLocations)
    flags.enableDebugInfo();
  module.print(stream, flags);
  return text;
}

OwningOpRef<ModuleOp> torch_ltc::exportTorchModule(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  PassManager passes(module.getContext(), module.getOperationName());
  passes.addPass(createExportOperatorsPass());
  (void)passes.run(*copy);
  return copy;
}

//===----------------------------------------------------------------------===//
// Lowering
//===----------------------------------------------------------------------===//

LogicalResult ProgramCompiler::run(void (*build)(OpPassManager &),
                                   double &seconds) {
  auto start = std::chrono::steady_clock::now();
  PassManager passes(module.getContext(), module.getOperationName());
  passes.enableVerifier(verify);
  build(passes);
  LogicalResult result = passes.run(module);
  seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return result;
}

LogicalResult ProgramCompiler::lowerToContract() {
  auto build = [](OpPassManager &passes) {
    TorchPipelineOptions options;
    options.legalOps = getRuntimeLegalOps();
    buildTorchPipeline(passes, options);
  };
  if (failed(run(build, statistics.torch_seconds)))
    return failure();
  module.walk([&](func::FuncOp function) {
    if (!function.isDeclaration())
      statistics.ops += llvm::range_size(function.getOps());
  });
  if (stageText)
    stageText("torch", printModule(*exportTorchModule(module), printLocations));
  return success();
}

LogicalResult ProgramCompiler::lowerToLinalg() {
  auto build = [](OpPassManager &passes) {
    buildTorchToLinalgPipeline(passes);
  };
  if (failed(run(build, statistics.linalg_seconds)))
    return failure();
  if (stageText)
    stageText("linalg", printModule(module, printLocations));
  return success();
}

/// Adapts the caller's cache to the interface of code generation.
static KernelObjectCache kernelCache(const LtcKernelCache &cache) {
  KernelObjectCache adapter;
  if (cache.lookup)
    adapter.lookup = [&cache](StringRef key) -> std::optional<std::string> {
      LtcBytes object = {nullptr, 0};
      if (!cache.lookup(key.data(), key.size(), &object, cache.user_data))
        return std::nullopt;
      std::string copy(object.data, object.size);
      ltcBytesDestroy(object);
      return copy;
    };
  if (cache.store)
    adapter.store = [&cache](StringRef key, StringRef object) {
      cache.store(key.data(), key.size(), object.data(), object.size(),
                  cache.user_data);
    };
  return adapter;
}

FailureOr<std::string> ProgramCompiler::compile(StringRef programName) {
  if (failed(lowerToContract()) || failed(lowerToLinalg()))
    return failure();
  return compileLinalg(programName);
}

FailureOr<std::string> ProgramCompiler::compileTosa(StringRef programName) {
  if (failed(run(buildTosaToLinalgPipeline, statistics.linalg_seconds)))
    return failure();
  if (stageText)
    stageText("linalg", printModule(module, printLocations));
  return compileLinalg(programName);
}

/// Verifies the types that the later stages assume, because a module from the
/// caller may have other types.
static LogicalResult verifySignature(ModuleOp module) {
  auto hasKnownSizes = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape();
  };
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isPrivate())
      continue;
    for (Type type : function.getArgumentTypes())
      if (!hasKnownSizes(type) && !type.isIntOrFloat())
        return function.emitError("@")
               << function.getName() << " takes a " << type
               << "; the parameters of a program must be tensors of known "
                  "sizes or numbers";
    for (Type type : function.getResultTypes())
      if (!hasKnownSizes(type))
        return function.emitError("@")
               << function.getName() << " returns a " << type
               << "; the results of a program must be tensors of known sizes";
  }
  return success();
}

LinalgCompileOptions
ProgramCompiler::codegenOptions(StringRef programName) const {
  LinalgCompileOptions options;
  // The host's CPU, or the CPU from the configuration.
  options.cpu = {ltcTargetCpuName(), ltcTargetCpuFeatures()};
  options.programName = programName.str();
  options.verify = verify;
  options.threads = threads;
  options.printLocations = printLocations;
  options.stageText = stageText;
  return options;
}

LogicalResult ProgramCompiler::lowerToKernels(StringRef programName) {
  if (failed(lowerToContract()) || failed(lowerToLinalg()))
    return failure();
  return torch_ltc::lowerToKernels(module, codegenOptions(programName));
}

void ProgramCompiler::addStatistics(const LinalgCompileStatistics &rest) {
  statistics.kernels_seconds = rest.kernelsSeconds;
  statistics.llvm_seconds = rest.llvmSeconds;
  statistics.kernels = rest.kernels;
  statistics.kernels_compiled = rest.kernelsCompiled;
  statistics.commands = rest.commands;
}

FailureOr<std::string>
ProgramCompiler::compileGeneral(ArrayRef<OwningOpRef<ModuleOp>> samples,
                                const GeneralNumbers &numbers,
                                StringRef programName) {
  SmallVector<ModuleOp> modules;
  for (const OwningOpRef<ModuleOp> &sample : samples)
    modules.push_back(*sample);
  LinalgCompileStatistics rest;
  FailureOr<std::string> executable = compileGeneralModules(
      modules, numbers, codegenOptions(programName), rest);
  addStatistics(rest);
  return executable;
}

FailureOr<std::string> ProgramCompiler::compileLinalg(StringRef programName) {
  if (failed(verifySignature(module)))
    return failure();
  LinalgCompileOptions options = codegenOptions(programName);
  LinalgCompileStatistics rest;
  FailureOr<std::string> executable = compileLinalgModule(
      module, options, kernelCache(compiler->kernelCache), rest);
  addStatistics(rest);
  return executable;
}

//===----------------------------------------------------------------------===//
// C API
//===----------------------------------------------------------------------===//

LtcStatus torch_ltc::checkFinished(LtcProgram program) {
  if (!program->module)
    return makeStatus("the program was already compiled");
  if (!program->finished)
    return makeStatus("the program has no outputs yet");
  return nullptr;
}

void ltcSetCompilationsCancelled(int cancelled) {
  setCompilationsCancelled(cancelled != 0);
}

ProgramCompiler::StageText
torch_ltc::stageTextOf(const LtcCompileOptions *options) {
  if (!options || !options->stage_text)
    return {};
  return [options](StringRef stage, StringRef text) {
    options->stage_text(stage.str().c_str(), text.str().c_str(), text.size(),
                        options->stage_user_data);
  };
}

LtcStatus ltcProgramCompile(LtcProgram program,
                            const LtcCompileOptions *options,
                            LtcBytes *executable,
                            LtcCompileStatistics *statistics) {
  if (LtcStatus error = checkFinished(program))
    return error;
  OwningOpRef<ModuleOp> module = std::move(program->module);
  DiagnosticCollector diagnostics(program->context());
  ProgramCompiler compiler(program->compiler, *module, stageTextOf(options),
                           options && options->print_locations,
                           options && options->verify,
                           options ? options->threads : 1);
  std::string name = program->function.getName().str();
  FailureOr<std::string> bytes = compiler.compile(name);
  if (failed(bytes))
    return makeStatus(diagnostics.text("the program cannot be compiled"));
  *executable = ltcBytesCreate(bytes->data(), bytes->size());
  if (statistics)
    *statistics = compiler.statistics;
  return nullptr;
}

template <typename DialectTy> static bool isOf(Type type) {
  return isa_and_present<DialectTy>(&type.getDialect());
}

/// Whether the module contains ops of the dialect or, in a program without ops,
/// arguments of its types.
template <typename DialectTy> static bool uses(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        auto function = dyn_cast<func::FuncOp>(op);
        return isa_and_present<DialectTy>(op->getDialect()) ||
                       (function && llvm::any_of(function.getArgumentTypes(),
                                                 isOf<DialectTy>))
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

LtcStatus ltcModuleCompile(LtcCompiler compiler, const char *module,
                           size_t size, const LtcCompileOptions *options,
                           LtcBytes *executable,
                           LtcCompileStatistics *statistics) {
  std::shared_ptr<LtcCompilerContext> home = compiler->get();
  DiagnosticCollector diagnostics(&home->context);
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(
      StringRef(module, size), &home->context, "module");
  if (!parsed)
    return makeStatus(diagnostics.text("the module cannot be parsed"));
  if (uses<stablehlo::StablehloDialect>(*parsed))
    return makeStatus("a module in StableHLO is for other compilers: this one "
                      "reads the torch dialect, TOSA and linalg");
  auto functions = parsed->getOps<func::FuncOp>();
  if (functions.empty())
    return makeStatus("the module has no function");
  std::string name = (*functions.begin()).getName().str();
  ProgramCompiler lowering(compiler, *parsed, stageTextOf(options),
                           options && options->print_locations,
                           /*verify=*/true, options ? options->threads : 1);
  FailureOr<std::string> bytes = failure();
  if (uses<torch::TorchDialect>(*parsed))
    bytes = lowering.compile(name);
  else if (uses<tosa::TosaDialect>(*parsed))
    bytes = lowering.compileTosa(name);
  else
    bytes = lowering.compileLinalg(name);
  if (failed(bytes))
    return makeStatus(diagnostics.text("the module cannot be compiled"));
  *executable = ltcBytesCreate(bytes->data(), bytes->size());
  if (statistics)
    *statistics = lowering.statistics;
  return nullptr;
}
