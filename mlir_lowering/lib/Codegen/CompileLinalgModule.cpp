//===- CompileLinalgModule.cpp - linalg stage to executable ---------------===//

#include "torch_ltc/Codegen/CompileLinalgModule.h"

#include "ExecutableBuilder.h"

#include "torch_ltc/Codegen/Passes.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"

#include "mlir/InitAllDialects.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/xxhash.h"

#include <chrono>

using namespace mlir;
using namespace mlir::torch_ltc;
namespace runtime = ::torch_ltc::runtime;

/// Part of each kernel's key and of the executable: raise it when the code
/// generated for the same kernel changes.
static constexpr StringLiteral codegenVersion = "2";

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

/// Kernels of one program: looks each up in the cache or compiles it.
class KernelSet {
public:
  KernelSet(ModuleOp module, const LinalgCompileOptions &options,
            const KernelObjectCache &cache, LinalgCompileStatistics &statistics,
            runtime::Executable &executable)
      : symbols(module), options(options), cache(cache), statistics(statistics),
        executable(executable),
        compiler(module.getContext(), options.cpu, options.verify) {}

  /// Index in `Executable.kernels` of the kernel that `call` needs.
  FailureOr<unsigned> add(ltc::KernelCallOp call, ArrayRef<int64_t> aliases) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    std::string name = call.getCallee().str();
    if (!aliases.empty()) {
      name += "_over";
      for (int64_t alias : aliases)
        name += "_" + (alias < 0 ? std::string("n") : std::to_string(alias));
    }
    auto [entry, isNew] =
        indexOfName.try_emplace(name, executable.kernels_size());
    if (!isNew)
      return entry->second;
    if (failed(addKernel(kernel, aliases, name)))
      return failure();
    return entry->second;
  }

  const TargetCpu &getCpu() const { return compiler.getCpu(); }
  const KernelTexts &getTexts() const { return texts; }

private:
  LogicalResult addKernel(func::FuncOp kernel, ArrayRef<int64_t> aliases,
                          StringRef name) {
    std::string source;
    llvm::raw_string_ostream(source) << kernel;
    std::string key = keyOf(name, source);
    runtime::Kernel *message = executable.add_kernels();
    message->set_symbol(name.str());
    message->set_key(key);
    ++statistics.kernels;
    if (!options.stageText && cache.lookup)
      if (std::optional<std::string> object = cache.lookup(key)) {
        message->set_object(std::move(*object));
        return success();
      }
    FailureOr<std::string> object = compiler.compile(
        kernel, aliases, name, options.stageText ? &texts : nullptr);
    if (failed(object))
      return failure();
    ++statistics.kernelsCompiled;
    if (cache.store)
      cache.store(key, *object);
    message->set_object(std::move(*object));
    return success();
  }

  /// The name carries the aliasing.
  std::string keyOf(StringRef name, StringRef source) {
    std::string text =
        (codegenVersion + "\n" + LLVM_VERSION_STRING + "\n" +
         compiler.getCpu().name + "\n" + compiler.getCpu().features + "\n" +
         name + "\n" + source)
            .str();
    llvm::XXH128_hash_t hash = llvm::xxh3_128bits(llvm::ArrayRef(
        reinterpret_cast<const uint8_t *>(text.data()), text.size()));
    return llvm::utohexstr(hash.high64, true, 16) +
           llvm::utohexstr(hash.low64, true, 16);
  }

  SymbolTable symbols;
  const LinalgCompileOptions &options;
  const KernelObjectCache &cache;
  LinalgCompileStatistics &statistics;
  runtime::Executable &executable;
  KernelCompiler compiler;
  llvm::StringMap<unsigned> indexOfName;
  KernelTexts texts;
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

LogicalResult lowerToKernels(ModuleOp module,
                             const LinalgCompileOptions &options) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  manager.enableVerifier(options.verify);
  if (options.reference)
    buildReferencePipeline(manager);
  else
    buildKernelsPipeline(manager);
  return manager.run(module);
}

} // namespace

void mlir::torch_ltc::registerCodegenDialects(DialectRegistry &registry) {
  registry.insert<ltc::LtcDialect>();
  registerAllDialects(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

FailureOr<std::string> mlir::torch_ltc::compileLinalgModule(
    ModuleOp module, const LinalgCompileOptions &options,
    const KernelObjectCache &cache, LinalgCompileStatistics &statistics) {
  SecondsTimer kernelsTimer;
  FailureOr<func::FuncOp> program = findProgram(module);
  if (failed(program) || failed(lowerToKernels(module, options)))
    return failure();
  FailureOr<BufferPlan> plan = BufferPlan::compute(*program);
  if (failed(plan))
    return failure();
  statistics.kernelsSeconds = kernelsTimer.elapsed();
  if (options.stageText)
    options.stageText("kernels", printModule(module, options.printLocations));

  SecondsTimer llvmTimer;
  runtime::Executable executable;
  KernelSet kernels(module, options, cache, statistics, executable);
  DenseMap<Operation *, unsigned> kernelOfCall;
  for (auto call : program->getBody().getOps<ltc::KernelCallOp>()) {
    auto aliases = plan->aliases.find(call);
    FailureOr<unsigned> index = kernels.add(
        call, aliases == plan->aliases.end() ? ArrayRef<int64_t>()
                                             : ArrayRef(aliases->second));
    if (failed(index))
      return failure();
    kernelOfCall[call] = *index;
  }
  executable.set_format_version(runtime::FORMAT_VERSION);
  executable.set_producer(
      ("torch_ltc codegen " + codegenVersion + ", LLVM " + LLVM_VERSION_STRING)
          .str());
  executable.set_cpu(kernels.getCpu().name + " " + kernels.getCpu().features);
  executable.set_name(options.programName);
  if (failed(
          ExecutableBuilder(*program, *plan, kernelOfCall, executable).build()))
    return failure();
  statistics.llvmSeconds = llvmTimer.elapsed();
  statistics.commands = executable.commands_size();
  if (options.stageText) {
    options.stageText("llvm", kernels.getTexts().llvm);
    options.stageText("asm", kernels.getTexts().assembly);
  }
  return executable.SerializeAsString();
}
