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

/// CPU to compile for.
struct TargetCpu {
  std::string name;     ///< LLVM's name; "": the host's
  std::string features; ///< LLVM's feature string; "": the name's own, or the
                        ///< host's if `name` is empty
};

/// What people and tools may read of kernels, one after the other.
struct KernelTexts {
  std::string llvm;     ///< optimised LLVM IR
  std::string assembly; ///< of the CPU that was compiled for
};

/// Compiles kernels one by one for one CPU. Not thread-safe.
class KernelCompiler {
public:
  /// `verify`: run MLIR's verifier between passes.
  KernelCompiler(MLIRContext *context, const TargetCpu &cpu, bool verify);
  ~KernelCompiler();

  /// CPU name and features with defaults filled in: part of the cache key.
  const TargetCpu &getCpu() const { return cpu; }

  /// Object (ELF) with the one public symbol `symbol`, whose signature is in
  /// executable.proto. `aliases` has the operand over which each result is
  /// written, or -1; empty: none. Emits an error on failure. If `texts` is
  /// given, the kernel's are appended to it.
  FailureOr<std::string> compile(func::FuncOp kernel, ArrayRef<int64_t> aliases,
                                 StringRef symbol, KernelTexts *texts);

private:
  MLIRContext *context;
  TargetCpu cpu;
  PassManager loopsManager, bufferizationManager;
  std::unique_ptr<llvm::TargetMachine> machine;
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CODEGEN_KERNELCOMPILER_H
