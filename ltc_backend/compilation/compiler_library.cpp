//===- compiler_library.cpp - mlir_lowering, loaded on demand -------------===//

#include "compilation/compiler_library.h"

#include "compilation/disk_cache.h"
#include "programs/program.h"
#include "programs/shared_library.h"

#include <dlfcn.h>

#include <atomic>
#include <mutex>

using namespace torch_ltc;

namespace {

std::atomic<bool> isLoaded{false};

CompilerLibrary load() {
  CompilerLibrary library;
  library.path = compilerLibraryPath();
  void *handle = openLibrary(library.path, "compiler");
#define LTC_RESOLVE(Name)                                                      \
  library.Name = reinterpret_cast<decltype(library.Name)>(                     \
      findFunction(handle, #Name, "compiler"));
  LTC_COMPILER_FUNCTIONS(LTC_RESOLVE)
#undef LTC_RESOLVE
  throwIfFailed(library.ltcCompilerCreate(&library.compiler));
  LtcKernelCache kernels = kernelCache();
  library.ltcCompilerSetKernelCache(library.compiler, &kernels);
  isLoaded = true;
  return library;
}

} // namespace

std::string torch_ltc::compilerLibraryPath() {
  return siblingLibraryPath("libltc_mlir_lowering.so");
}

const CompilerLibrary &torch_ltc::compilerLibrary() {
  // A failed load throws and is retried at the next call. The library is never
  // unloaded: LLVM's static destructors and ours have no defined order.
  static const auto *library = new CompilerLibrary(load());
  return *library;
}

static std::atomic<bool> isCancelling{false};

static void setCancelled(bool cancelled) {
  isCancelling = cancelled;
  if (isCompilerLoaded())
    compilerLibrary().ltcSetCompilationsCancelled(cancelled);
}

CancelledCompilations::CancelledCompilations() { setCancelled(true); }
CancelledCompilations::~CancelledCompilations() { setCancelled(false); }

bool torch_ltc::areCompilationsCancelled() { return isCancelling; }

bool torch_ltc::isCompilerLoaded() { return isLoaded; }
