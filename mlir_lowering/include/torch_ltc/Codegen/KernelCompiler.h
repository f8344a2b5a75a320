//===- KernelCompiler.h - One kernel to one relocatable object --*- C++ -*-===//

#ifndef TORCH_LTC_CODEGEN_KERNELCOMPILER_H
#define TORCH_LTC_CODEGEN_KERNELCOMPILER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace mlir::torch_ltc {

class NumberFitter;

/// CPU to compile for.
struct TargetCpu {
  std::string name;     ///< LLVM's name; "": the host's
  std::string features; ///< LLVM's feature string; "": that of `name`, or the
                        ///< host's if `name` is empty
};

/// Readable forms of kernels, concatenated.
struct KernelTexts {
  std::string llvm;     ///< optimized LLVM IR
  std::string assembly; ///< for the target CPU
};

/// Compiles kernels one by one for one CPU. Not thread-safe.
class KernelCompiler {
public:
  /// `verify`: run MLIR's verifier between passes.
  KernelCompiler(MLIRContext *context, const TargetCpu &cpu, bool verify);
  ~KernelCompiler();

  /// CPU name and features with defaults filled in: part of the cache key.
  const TargetCpu &getCpu() const { return cpu; }

  /// Returns the object (ELF) with one public symbol, `symbol`, whose signature
  /// is in executable.proto. `aliases[i]` is the operand that result `i`
  /// overwrites, or -1; if `aliases` is empty, no result overwrites an operand.
  /// Emits an error on failure. If `texts` is given, the kernel's texts are
  /// appended to it.
  FailureOr<std::string> compile(func::FuncOp kernel, ArrayRef<int64_t> aliases,
                                 StringRef symbol, KernelTexts *texts);

  /// Compiles a kernel to one object for all sizes. `samples` contains the
  /// kernel at the stand-ins of each sample. `numbers` receives the codes of
  /// the numbers in the kernel's table. Emits an error on failure.
  FailureOr<std::string>
  compileGeneral(ArrayRef<func::FuncOp> samples, ArrayRef<int64_t> aliases,
                 StringRef symbol, NumberFitter &fitter,
                 std::vector<std::vector<int64_t>> &numbers,
                 KernelTexts *texts);

private:
  FailureOr<OwningOpRef<ModuleOp>> lower(func::FuncOp kernel,
                                         ArrayRef<int64_t> aliases,
                                         DenseI64ArrayAttr varyingAxes = {});
  FailureOr<std::string> emitObject(ModuleOp module, StringRef kernel,
                                    StringRef symbol, KernelTexts *texts);

  MLIRContext *context;
  TargetCpu cpu;
  PassManager loopsManager, bufferizationManager;
  std::unique_ptr<llvm::TargetMachine> machine;
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CODEGEN_KERNELCOMPILER_H
