//===- CompileLinalgModule.h - linalg stage to executable -------*- C++ -*-===//
//
// Lowers a program at the linalg stage to the kernels stage, and compiles it to
// an executable.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CODEGEN_COMPILELINALGMODULE_H
#define TORCH_LTC_CODEGEN_COMPILELINALGMODULE_H

#include "torch_ltc/Codegen/KernelCompiler.h"
#include "torch_ltc/Kernels/BufferPlan.h"

#include "torch_ltc-c/size_stand_ins.h"

#include "mlir/IR/BuiltinOps.h"

#include <array>
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
  /// Print `loc(...)` in the stages' texts.
  bool printLocations = false;
  /// Compile without library calls, fusion or scheduling, as one kernel
  /// produced by upstream passes: the reference for tests.
  bool reference = false;
  /// Called with the text of the stages "kernels", "plan", "llvm" and "asm". If
  /// set, kernels are compiled even if they are in the cache, which doesn't
  /// contain their LLVM IR.
  std::function<void(StringRef stage, StringRef text)> stageText;
};

/// Cache of kernel objects by key. Either function may be empty.
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
/// without emitting an error.
void setCompilationsCancelled(bool cancelled);

/// Registers the dialects, interfaces and translations that the kernels and
/// llvm stages need.
void registerCodegenDialects(DialectRegistry &registry);

/// Lowers the module to the kernels stage: commands with a buffer plan, and
/// kernels with schedules. Emits errors on failure.
FailureOr<BufferPlan> lowerToKernels(ModuleOp module,
                                     const LinalgCompileOptions &options);

/// Compiles the module's single public function at the linalg stage
/// (static-shape tensors; f64 and i64 scalar parameters) to a serialized
/// `torch_ltc.runtime.Executable`. Leaves the module at the kernels stage. On
/// failure, emits errors at the locations of ops.
FailureOr<std::string> compileLinalgModule(ModuleOp module,
                                           const LinalgCompileOptions &options,
                                           const KernelObjectCache &cache,
                                           LinalgCompileStatistics &statistics);

/// Number of vectors of stand-ins at which a general program is lowered.
inline constexpr unsigned kNumSamples = LTC_GENERAL_SAMPLES;
/// The value of a number in each of the lowered programs.
using SizeSamples = std::array<int64_t, kNumSamples>;

/// The value of a floating-point number in each of the lowered programs.
using FloatSamples = std::array<double, kNumSamples>;

/// What is known about the numbers of a general program.
struct GeneralNumbers {
  SmallVector<SizeSamples> standIns; ///< of each symbol
  SmallVector<SizeSamples> checked;  ///< the trace's; a binding checks them
  /// Values of the program's last scalar parameters, which a binding computes.
  SmallVector<FloatSamples> scalars;
};

/// Compiles `samples`, one program at the linalg stage at the stand-ins of each
/// sample, to a general executable for sizes from 2 to each symbol's smallest
/// stand-in (`GeneralForm` in executable.proto). The modules must have had
/// kGeneralAttr from their first pass on. Emits an error if the program has no
/// general form.
FailureOr<std::string>
compileGeneralModules(ArrayRef<ModuleOp> samples, const GeneralNumbers &numbers,
                      const LinalgCompileOptions &options,
                      LinalgCompileStatistics &statistics);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CODEGEN_COMPILELINALGMODULE_H
