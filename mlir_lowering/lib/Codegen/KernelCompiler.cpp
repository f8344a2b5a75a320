//===- KernelCompiler.cpp - One kernel to one relocatable object ----------===//

#include "torch_ltc/Codegen/KernelCompiler.h"
#include "BfloatSigns.h"
#include "GeneralizeKernel.h"
#include "torch_ltc/Codegen/Passes.h"
#include "torch_ltc/Kernels/KernelSchedule.h"

#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <mutex>

using namespace mlir;
using namespace mlir::torch_ltc;

static TargetCpu withDefaults(TargetCpu cpu) {
  if (!cpu.name.empty())
    return cpu;
  cpu.name = llvm::sys::getHostCPUName().str();
  if (cpu.features.empty()) {
    SmallVector<std::string> features;
    for (auto &[feature, isOn] : llvm::sys::getHostCPUFeatures())
      features.push_back((isOn ? "+" : "-") + feature.str());
    llvm::sort(features); // the map's order isn't fixed, but the key's must be
    cpu.features = llvm::join(features, ",");
  }
  return cpu;
}

static std::unique_ptr<llvm::TargetMachine>
createMachine(const TargetCpu &cpu) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, cpu.name, cpu.features, options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Default));
}

KernelCompiler::KernelCompiler(MLIRContext *context, const TargetCpu &target,
                               bool verify)
    : context(context), cpu(withDefaults(target)),
      loopsManager(context, ModuleOp::getOperationName()),
      bufferizationManager(context, ModuleOp::getOperationName()),
      machine(createMachine(cpu)) {
  loopsManager.enableVerifier(verify);
  buildLoopsPipeline(loopsManager);
  bufferizationManager.enableVerifier(verify);
  buildBufferizationPipeline(bufferizationManager);
}

KernelCompiler::~KernelCompiler() = default;

/// Adds `void symbol(ptr buffers, i64 begin, i64 end)`, which loads the
/// pointers and calls `body`. The noalias attributes are on the body's
/// arguments, because loaded pointers can't have them.
static void addEntry(llvm::Function *body, StringRef symbol) {
  llvm::LLVMContext &context = body->getContext();
  llvm::IRBuilder<> builder(context);
  auto *pointer = builder.getPtrTy();
  auto *type = llvm::FunctionType::get(
      builder.getVoidTy(),
      {pointer, builder.getInt64Ty(), builder.getInt64Ty()}, false);
  auto *entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                       symbol, body->getParent());
  builder.SetInsertPoint(llvm::BasicBlock::Create(context, "", entry));
  SmallVector<llvm::Value *> arguments;
  for (unsigned i = 0; i + 2 < body->arg_size(); ++i)
    arguments.push_back(builder.CreateLoad(
        pointer, builder.CreateConstGEP1_64(pointer, entry->getArg(0), i)));
  arguments.append({entry->getArg(1), entry->getArg(2)});
  builder.CreateCall(body, arguments);
  builder.CreateRetVoid();
  body->setLinkage(llvm::Function::InternalLinkage);
  body->addFnAttr(llvm::Attribute::NoInline);
}

static void setTargetAttributes(llvm::Module &module,
                                llvm::TargetMachine &machine) {
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple());
  bool hasAvx512 = machine.getTargetFeatureString().contains("+avx512f");
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    // Use vectors of 512 bits: LLVM would prefer 256 bits on most CPUs with
    // AVX-512.
    if (hasAvx512)
      function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  // Don't use AArch64's libmvec, which is new in glibc 2.38 and lacks some of
  // LLVM's names.
  if (machine.getTargetTriple().isX86())
    library.addVectorizableFunctionsFromVecLib(llvm::VectorLibrary::LIBMVEC,
                                               machine.getTargetTriple());
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  // Counts of constant masks only become invariant when a loop is deleted,
  // after the pipeline has moved invariants out of loops. For a chain of
  // invariant ops in a loop, the vectorizer's time is exponential (LLVM 22:
  // each op is analyzed once for each use of its operands).
  builder.registerVectorizerStartEPCallback(
      [](llvm::FunctionPassManager &passes, llvm::OptimizationLevel) {
        passes.addPass(llvm::createFunctionToLoopPassAdaptor(
            llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
      });
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
      .run(module, modules);
}

/// Allows LLVM to fuse products and sums into multiply-adds, except those of
/// 16-bit floats: eager's kernels round each result, but processors with 16-bit
/// arithmetic (AVX512-FP16, AArch64) would round a fused operation once.
static void allowContraction(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &op : llvm::instructions(function))
      if (llvm::isa<llvm::FPMathOperator>(op) &&
          op.getType()->getScalarSizeInBits() >= 32)
        op.setHasAllowContract(true);
}

static bool emit(llvm::Module &module, llvm::TargetMachine &machine,
                 llvm::CodeGenFileType type, std::string &result) {
  SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager emitter;
  if (machine.addPassesToEmitFile(emitter, stream, nullptr, type))
    return false;
  emitter.run(module);
  result = bytes.str().str();
  return true;
}

FailureOr<OwningOpRef<ModuleOp>>
KernelCompiler::lower(func::FuncOp kernel, ArrayRef<int64_t> aliases,
                      DenseI64ArrayAttr varyingAxes) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  func::FuncOp body = kernel.clone();
  body.setPublic();
  if (!aliases.empty())
    body->setAttr(kAliasesAttr, DenseI64ArrayAttr::get(context, aliases));
  if (varyingAxes)
    body->setAttr(kVaryingAxesAttr, varyingAxes);
  module->push_back(body);
  PassManager &manager =
      isScheduled(body) ? loopsManager : bufferizationManager;
  if (failed(manager.run(*module)))
    return failure();
  return module;
}

FailureOr<std::string> KernelCompiler::emitObject(ModuleOp module,
                                                  StringRef kernel,
                                                  StringRef symbol,
                                                  KernelTexts *texts) {
  Location loc = module.getLoc();
  if (!machine)
    return emitError(loc) << "LLVM has no code generator for this machine ("
                          << llvm::sys::getProcessTriple() << ")";
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, llvmContext);
  if (!llvmModule)
    return emitError(loc) << "kernel could not be translated to LLVM IR";
  llvm::Function *function = llvmModule->getFunction(kernel);
  function->setName(symbol + "_body");
  addEntry(function, symbol);
  setTargetAttributes(*llvmModule, *machine);
  optimize(*llvmModule, *machine);
  allowContraction(*llvmModule);
  readBfloatBitsAsFloat(*llvmModule);
  if (texts) {
    llvm::raw_string_ostream(texts->llvm) << *llvmModule;
    // Emit from a copy, because emitting changes the module.
    std::string assembly;
    if (!emit(*llvm::CloneModule(*llvmModule), *machine,
              llvm::CodeGenFileType::AssemblyFile, assembly))
      return emitError(loc) << "LLVM can't emit assembly for this machine";
    texts->assembly += assembly;
  }
  std::string object;
  if (!emit(*llvmModule, *machine, llvm::CodeGenFileType::ObjectFile, object))
    return emitError(loc) << "LLVM can't emit objects for this machine";
  return object;
}

FailureOr<std::string> KernelCompiler::compile(func::FuncOp kernel,
                                               ArrayRef<int64_t> aliases,
                                               StringRef symbol,
                                               KernelTexts *texts) {
  FailureOr<OwningOpRef<ModuleOp>> module = lower(kernel, aliases);
  if (failed(module))
    return failure();
  return emitObject(**module, kernel.getName(), symbol, texts);
}

/// The axes whose sizes differ between the samples of a kernel. If the samples
/// have different numbers of axes, the kernel has no form for all sizes, which
/// generalizeKernel reports.
static DenseI64ArrayAttr findVaryingAxes(ArrayRef<func::FuncOp> samples) {
  SmallVector<ArrayRef<ltc::AxisAttr>> axes;
  for (func::FuncOp sample : samples)
    if (auto schedule = sample->getAttrOfType<ltc::ScheduleAttr>(kScheduleAttr))
      axes.push_back(schedule.getAxes());
  SmallVector<int64_t> varying;
  for (size_t i = 0; !axes.empty() && i < axes[0].size(); ++i)
    if (llvm::any_of(axes, [&](ArrayRef<ltc::AxisAttr> other) {
          return other.size() != axes[0].size() ||
                 other[i].getSize() != axes[0][i].getSize();
        }))
      varying.push_back(i);
  return DenseI64ArrayAttr::get(func::FuncOp(samples[0]).getContext(), varying);
}

FailureOr<std::string> KernelCompiler::compileGeneral(
    ArrayRef<func::FuncOp> samples, ArrayRef<int64_t> aliases, StringRef symbol,
    NumberFitter &fitter, std::vector<std::vector<int64_t>> &numbers,
    KernelTexts *texts) {
  SmallVector<OwningOpRef<ModuleOp>> modules;
  SmallVector<LLVM::LLVMFuncOp> functions;
  DenseI64ArrayAttr varyingAxes = findVaryingAxes(samples);
  for (func::FuncOp sample : samples) {
    FailureOr<OwningOpRef<ModuleOp>> module =
        lower(sample, aliases, varyingAxes);
    if (failed(module))
      return failure();
    functions.push_back(
        (*module)->lookupSymbol<LLVM::LLVMFuncOp>(sample.getName()));
    if (!functions.back())
      return sample.emitError("the program has no form for all sizes: a kernel "
                              "is empty at some sizes");
    modules.push_back(std::move(*module));
  }
  FailureOr<std::vector<NumberCode>> codes =
      generalizeKernel(functions, fitter);
  if (failed(codes))
    return failure();
  numbers = std::move(*codes);
  return emitObject(*modules[0], functions[0].getName(), symbol, texts);
}
