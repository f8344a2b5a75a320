//===- CompileLinalgModule.h - linalg stage to executable -------*- C++ -*-===//
//
// The second half of the compiler in one call.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CODEGEN_COMPILELINALGMODULE_H
#define TORCH_LTC_CODEGEN_COMPILELINALGMODULE_H

#include "torch_ltc/Codegen/KernelCompiler.h"
#include "torch_ltc/Kernels/BufferPlan.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <optional>

namespace mlir::torch_ltc {

struct LinalgCompileOptions {
  TargetCpu cpu;
  /// Name of the program in the executable.
  std::string programName;
  /// Run MLIR's verifier between passes.
  bool verify = false;
  /// Kernels are compiled by up to this many threads, the caller's among them.
  unsigned threads = 1;
  /// `loc(...)` in the stages' texts.
  bool printLocations = false;
  /// Compile without library calls, fusion or scheduling, as one kernel made
  /// by upstream passes: what tests compare with.
  bool reference = false;
  /// Called with the text of the stages "kernels", "plan", "llvm" and "asm".
  /// When set, kernels are compiled even if they are in the cache (their LLVM
  /// IR would be missing).
  std::function<void(StringRef stage, StringRef text)> stageText;
};

/// Objects of kernels by key. Either function may be empty.
struct KernelObjectCache {
  std::function<std::optional<std::string>(StringRef key)> lookup;
  std::function<void(StringRef key, StringRef object)> store;
};

struct LinalgCompileStatistics {
  double kernelsSeconds = 0; ///< linalg -> kernels stage and buffer plan
  double llvmSeconds = 0;    ///< kernels -> objects
  size_t kernels = 0;        ///< distinct kernels
  size_t kernelsCompiled = 0;
  size_t commands = 0;
};

/// While set, all compilations of the process fail before their next kernel,
/// with no error emitted.
void setCompilationsCancelled(bool cancelled);

/// Dialects, interfaces and translations that the kernels and llvm stages
/// need.
void registerCodegenDialects(DialectRegistry &registry);

/// Lowers the module to the kernels stage: commands with a buffer plan, and
/// kernels with schedules. On failure errors were emitted.
FailureOr<BufferPlan> lowerToKernels(ModuleOp module,
                                     const LinalgCompileOptions &options);

/// Compiles the module's one public function, which is at the linalg stage
/// (static-shape tensors; f64 and i64 scalar parameters), to a serialised
/// `torch_ltc.runtime.Executable`. The module is left at the kernels stage.
/// On failure errors were emitted at the ops' locations.
FailureOr<std::string> compileLinalgModule(ModuleOp module,
                                           const LinalgCompileOptions &options,
                                           const KernelObjectCache &cache,
                                           LinalgCompileStatistics &statistics);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CODEGEN_COMPILELINALGMODULE_H
