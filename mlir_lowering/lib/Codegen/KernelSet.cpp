//===- KernelSet.cpp - Kernels of one program -----------------------------===//

#include "KernelSet.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/xxhash.h"

#include <atomic>
#include <thread>

using namespace mlir;
using namespace mlir::torch_ltc;
namespace runtime = ::torch_ltc::runtime;

static std::atomic<bool> isCancelled = false;

void mlir::torch_ltc::setCompilationsCancelled(bool cancelled) {
  isCancelled = cancelled;
}

KernelSet::KernelSet(ModuleOp module, const LinalgCompileOptions &options,
                     const KernelObjectCache &cache,
                     runtime::Executable &executable)
    : symbols(module), options(options), cache(cache), executable(executable),
      compiler(module.getContext(), options.cpu, options.verify) {}

unsigned KernelSet::add(ltc::KernelCallOp call) {
  auto attribute = call->getAttrOfType<DenseI64ArrayAttr>(kAliasesAttr);
  ArrayRef<int64_t> aliases =
      attribute ? attribute.asArrayRef() : ArrayRef<int64_t>();
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
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  std::string source;
  llvm::raw_string_ostream(source) << kernel;
  runtime::Kernel *message = executable.add_kernels();
  message->set_symbol(name);
  message->set_key(keyOf(name, source));
  std::optional<std::string> object;
  if (!options.stageText && cache.lookup)
    object = cache.lookup(message->key());
  if (object)
    message->set_object(std::move(*object));
  else
    pending.push_back({kernel,
                       SmallVector<int64_t>(aliases),
                       message,
                       std::move(source),
                       {}});
  return entry->second;
}

/// Returns the kernel's key in the cache. Kernels that differ only in their
/// aliases have different names, and so different keys.
std::string KernelSet::keyOf(StringRef name, StringRef source) const {
  std::string text =
      (kCodegenVersion + "\n" + LLVM_VERSION_STRING + "\n" + getCpu().name +
       "\n" + getCpu().features + "\n" + name + "\n" + source)
          .str();
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(llvm::ArrayRef(
      reinterpret_cast<const uint8_t *>(text.data()), text.size()));
  return llvm::utohexstr(hash.high64, true, 16) +
         llvm::utohexstr(hash.low64, true, 16);
}

LogicalResult KernelSet::compileOne(KernelCompiler &with,
                                    Pending &kernel) const {
  FailureOr<std::string> object =
      with.compile(kernel.kernel, kernel.aliases, kernel.message->symbol(),
                   options.stageText ? &kernel.texts : nullptr);
  if (failed(object))
    return failure();
  kernel.message->set_object(std::move(*object));
  return success();
}

LogicalResult KernelSet::compileEach(
    function_ref<LogicalResult(KernelCompiler &, size_t)> compileOne) {
  // Start with the largest kernel: if a thread started it last, the other
  // threads would wait for it.
  auto order = llvm::to_vector(llvm::seq<size_t>(0, pending.size()));
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    return pending[a].source.size() > pending[b].source.size();
  });

  MLIRContext *context = symbols.getOp()->getContext();
  std::atomic<size_t> next = 0;
  std::atomic<bool> isFailed = false;
  {
    // Errors are emitted by the caller's thread, in program order.
    ParallelDiagnosticHandler diagnostics(context);
    auto work = [&](KernelCompiler &with) {
      for (size_t i = next++; i < order.size() && !isFailed; i = next++) {
        if (isCancelled) {
          isFailed = true;
          return;
        }
        diagnostics.setOrderIDForThread(order[i]);
        if (failed(compileOne(with, order[i])))
          isFailed = true;
        diagnostics.eraseOrderIDForThread();
      }
    };
    std::vector<std::thread> helpers;
    size_t numThreads = std::min<size_t>(options.threads, order.size());
    for (size_t i = 1; i < numThreads; ++i)
      helpers.emplace_back([&] {
        KernelCompiler own(context, options.cpu, options.verify);
        work(own);
      });
    work(compiler);
    for (std::thread &helper : helpers)
      helper.join();
  }
  if (isFailed)
    return failure();
  for (Pending &kernel : pending) {
    texts.llvm += kernel.texts.llvm;
    texts.assembly += kernel.texts.assembly;
  }
  return success();
}

LogicalResult KernelSet::compile() {
  if (failed(compileEach([&](KernelCompiler &with, size_t i) {
        return compileOne(with, pending[i]);
      })))
    return failure();
  if (cache.store)
    for (Pending &kernel : pending)
      cache.store(kernel.message->key(), kernel.message->object());
  return success();
}

LogicalResult KernelSet::compileGeneral(
    ArrayRef<KernelSet *> others, NumberFitter &fitter,
    std::vector<std::vector<std::vector<int64_t>>> &numbers) {
  for (KernelSet *other : others)
    if (other->pending.size() != pending.size())
      return symbols.getOp()->emitError(
          "the program has no form for all sizes: the number of its kernels "
          "depends on the sizes");
  numbers.resize(pending.size());
  return compileEach([&](KernelCompiler &with, size_t i) -> LogicalResult {
    Pending &own = pending[i];
    SmallVector<func::FuncOp> samples{own.kernel};
    std::string sources = own.source;
    for (KernelSet *other : others) {
      if (other->pending[i].aliases != own.aliases)
        return own.kernel.emitError("the program has no form for all sizes: "
                                    "the operands that a kernel overwrites "
                                    "depend on the sizes");
      samples.push_back(other->pending[i].kernel);
      sources += other->pending[i].source;
    }
    own.message->set_key(keyOf(own.message->symbol(), sources));
    FailureOr<std::string> object = with.compileGeneral(
        samples, own.aliases, own.message->symbol(), fitter, numbers[i],
        options.stageText ? &own.texts : nullptr);
    if (failed(object))
      return failure();
    own.message->set_object(std::move(*object));
    return success();
  });
}
