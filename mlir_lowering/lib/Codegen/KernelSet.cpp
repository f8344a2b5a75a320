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
    pending.push_back(
        {kernel, SmallVector<int64_t>(aliases), message, source.size(), {}});
  return entry->second;
}

/// The name includes the aliasing.
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

LogicalResult KernelSet::compile() {
  // The largest first: if a thread started it last, the others would be idle.
  auto order = llvm::to_vector(llvm::seq<size_t>(0, pending.size()));
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    return pending[a].sourceSize > pending[b].sourceSize;
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
        if (failed(compileOne(with, pending[order[i]])))
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
    if (cache.store)
      cache.store(kernel.message->key(), kernel.message->object());
    texts.llvm += kernel.texts.llvm;
    texts.assembly += kernel.texts.assembly;
  }
  return success();
}
