//===- runtime_library.cpp - The runtime, loaded on demand ----------------===//
//
// The runtime needs LLVM's linker, and loading libLLVM takes as long as the
// rest of `import torch_ltc`. So this library doesn't link the runtime: it
// defines the functions of the runtime's C API under their own names. Each
// looks up the real function at its first call, transparently for callers.
//
//===----------------------------------------------------------------------===//

#include "programs/host_calls.h"
#include "programs/shared_library.h"

#include "torch_ltc-c/runtime.h"

#include <atomic>

using namespace torch_ltc;

namespace {

std::atomic<bool> isRuntimeLoaded{false};

template <typename Function> Function find(const char *name, Function) {
  // A failed load throws and is retried at the next call.
  static void *library =
      openLibrary(siblingLibraryPath("libltc_runtime.so"), "runtime");
  isRuntimeLoaded.store(true, std::memory_order_relaxed);
  return reinterpret_cast<Function>(findFunction(library, name, "runtime"));
}

} // namespace

// The last argument of `find` only provides the type.
#define LTC_FORWARD(Result, Name, Parameters, Arguments)                       \
  Result Name Parameters {                                                     \
    static const auto real = find(#Name, &Name);                               \
    return real Arguments;                                                     \
  }

LTC_FORWARD(const char *, ltcStatusMessage, (LtcStatus status), (status))
LTC_FORWARD(LtcStatus, ltcStatusCreate, (const char *message), (message))
LTC_FORWARD(LtcBytes, ltcBytesCreate, (const char *data, size_t size),
            (data, size))

// Destructors also call these functions if there is nothing to release. Such a
// call doesn't load the runtime.
void ltcStatusDestroy(LtcStatus status) {
  if (!status)
    return;
  static const auto real = find("ltcStatusDestroy", &ltcStatusDestroy);
  real(status);
}

void ltcBytesDestroy(LtcBytes bytes) {
  if (!bytes.data)
    return;
  static const auto real = find("ltcBytesDestroy", &ltcBytesDestroy);
  real(bytes);
}

// Does nothing if the runtime isn't loaded, because this function is called
// before each step, and some steps don't need the runtime.
void ltcPrepareThreads(int threads) {
  if (!isRuntimeLoaded.load(std::memory_order_relaxed))
    return;
  static const auto real = find("ltcPrepareThreads", &ltcPrepareThreads);
  real(threads);
}

// Defines a function that returns 0 if the runtime isn't loaded, because users
// may call the function before anything has run.
#define LTC_FORWARD_BYTES(Name)                                                \
  size_t Name(void) {                                                          \
    if (!isRuntimeLoaded.load(std::memory_order_relaxed))                      \
      return 0;                                                                \
    static const auto real = find(#Name, &Name);                               \
    return real();                                                             \
  }
LTC_FORWARD_BYTES(ltcArenaPoolBytes)
LTC_FORWARD_BYTES(ltcPackedWeightBytes)

LtcStatus ltcExecutableLoad(const char *data, size_t size,
                            LtcExecutable *executable) {
  static const auto real = [] {
    registerHostCalls();
    return find("ltcExecutableLoad", &ltcExecutableLoad);
  }();
  return real(data, size, executable);
}

LTC_FORWARD(LtcStatus, ltcExecutableBind,
            (LtcExecutable general, const LtcSizes *sizes,
             LtcExecutable *bound),
            (general, sizes, bound))
LTC_FORWARD(LtcStatus, ltcSizesCheck,
            (const char *form, size_t size, const LtcSizes *sizes),
            (form, size, sizes))
LTC_FORWARD(void, ltcExecutableDestroy, (LtcExecutable executable),
            (executable))
LTC_FORWARD(size_t, ltcExecutableNumParameters, (LtcExecutable executable),
            (executable))
LTC_FORWARD(LtcTensorInfo, ltcExecutableParameter,
            (LtcExecutable executable, size_t index), (executable, index))
LTC_FORWARD(size_t, ltcExecutableNumScalars, (LtcExecutable executable),
            (executable))
LTC_FORWARD(int, ltcExecutableScalarIsFloat,
            (LtcExecutable executable, size_t index), (executable, index))
LTC_FORWARD(size_t, ltcExecutableNumOutputs, (LtcExecutable executable),
            (executable))
LTC_FORWARD(LtcOutputInfo, ltcExecutableOutput,
            (LtcExecutable executable, size_t index), (executable, index))
LTC_FORWARD(size_t, ltcExecutableArenaBytes, (LtcExecutable executable),
            (executable))
LTC_FORWARD(size_t, ltcExecutableNumKernels, (LtcExecutable executable),
            (executable))
LTC_FORWARD(size_t, ltcExecutableNumCommands, (LtcExecutable executable),
            (executable))
LTC_FORWARD(LtcCommandInfo, ltcExecutableCommand,
            (LtcExecutable executable, size_t index), (executable, index))
LTC_FORWARD(LtcStatus, ltcExecutableRun,
            (LtcExecutable executable, const LtcRunArguments *arguments),
            (executable, arguments))
LTC_FORWARD(void, ltcSetHostFunction, (LtcHostFunction function), (function))
LTC_FORWARD(LtcStatus, ltcCacheCreate,
            (const LtcCacheOptions *options, LtcCache *cache), (options, cache))
LTC_FORWARD(void, ltcCacheDestroy, (LtcCache cache), (cache))
LTC_FORWARD(LtcStatus, ltcCacheLookup,
            (LtcCache cache, LtcCacheKind kind, const char *key, size_t keySize,
             LtcBytes *value, int *found),
            (cache, kind, key, keySize, value, found))
LTC_FORWARD(LtcStatus, ltcCacheStore,
            (LtcCache cache, LtcCacheKind kind, const char *key, size_t keySize,
             const char *value, size_t valueSize),
            (cache, kind, key, keySize, value, valueSize))
LTC_FORWARD(LtcCacheStatistics, ltcCacheGetStatistics, (LtcCache cache),
            (cache))
LTC_FORWARD(const char *, ltcCacheSalt, (void), ())
LTC_FORWARD(const char *, ltcTargetCpuName, (void), ())
LTC_FORWARD(const char *, ltcTargetCpuFeatures, (void), ())
LTC_FORWARD(void, ltcSetTargetCpu, (const char *name, const char *features),
            (name, features))
