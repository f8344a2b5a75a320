//===- compiler_library.cpp - mlir_lowering, loaded when needed -----------===//

#include "lowering/compiler_library.h"

#include "executor/program.h"
#include "lowering/disk_cache.h"

#include <dlfcn.h>

#include <atomic>
#include <mutex>
#include <stdexcept>

using namespace torch_ltc;

namespace {

std::atomic<bool> isLoaded{false};

template <typename Function>
void resolve(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function)
    throw std::runtime_error(std::string("torch_ltc's compiler library lacks "
                                         "the function ") +
                             name +
                             ": it is of another version; build or "
                             "install torch_ltc again.");
}

CompilerLibrary load() {
  CompilerLibrary library;
  library.path = compilerLibraryPath();
  void *handle = dlopen(library.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw std::runtime_error(
        std::string("torch_ltc's compiler can't be loaded (") + dlerror() +
        "); 'python -m torch_ltc.doctor' says what is missing.");
#define LTC_RESOLVE(Name) resolve(handle, #Name, library.Name);
  LTC_COMPILER_FUNCTIONS(LTC_RESOLVE)
#undef LTC_RESOLVE
  throwIfFailed(library.ltcCompilerCreate(&library.compiler));
  LtcKernelCache kernels = kernelCache();
  library.ltcCompilerSetKernelCache(library.compiler, &kernels);
  isLoaded = true;
  return library;
}

} // namespace

std::string torch_ltc::backendLibraryPath() {
  Dl_info info{};
  dladdr(reinterpret_cast<void *>(&isCompilerLoaded), &info);
  return info.dli_fname ? info.dli_fname : "";
}

std::string torch_ltc::compilerLibraryPath() {
  std::string own = backendLibraryPath();
  return own.substr(0, own.rfind('/') + 1) + "libltc_mlir_lowering.so";
}

const CompilerLibrary &torch_ltc::compilerLibrary() {
  // A failed load throws and is tried again the next time. Never unloaded:
  // LLVM's static destructors and ours have no order.
  static const auto *library = new CompilerLibrary(load());
  return *library;
}

bool torch_ltc::isCompilerLoaded() { return isLoaded; }
