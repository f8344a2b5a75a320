//===- KernelSet.h - Kernels of one program ---------------------*- C++ -*-===//
//
// Looks each kernel up in the cache, and compiles the missing kernels with
// several threads, because this step takes nine tenths of the time to compile a
// program.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CODEGEN_KERNELSET_H
#define TORCH_LTC_CODEGEN_KERNELSET_H

#include "torch_ltc/Codegen/CompileLinalgModule.h"
#include "torch_ltc/Dialect/Ltc/LtcDialect.h"

#include "executable.pb.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::torch_ltc {

/// Part of each kernel's key and of the executable. Increment it when the code
/// generated for the same kernel changes.
inline constexpr StringLiteral kCodegenVersion = "4";

class KernelSet {
public:
  KernelSet(ModuleOp module, const LinalgCompileOptions &options,
            const KernelObjectCache &cache,
            ::torch_ltc::runtime::Executable &executable);

  /// Adds the kernel that `call` needs, unless the set already contains this
  /// kernel, and returns the kernel's index in `Executable.kernels`. The
  /// kernel's object exists after `compile`.
  unsigned add(ltc::KernelCallOp call);

  /// Compiles the kernels that aren't in the cache. Emits errors on failure.
  LogicalResult compile();

  /// Compiles each kernel of this set for all sizes. `others` contains the same
  /// kernels, lowered at the other samples of the sizes. `numbers` receives the
  /// codes of the numbers in each kernel's table.
  LogicalResult
  compileGeneral(ArrayRef<KernelSet *> others, NumberFitter &fitter,
                 std::vector<std::vector<std::vector<int64_t>>> &numbers);

  size_t numCompiled() const { return pending.size(); }
  const TargetCpu &getCpu() const { return compiler.getCpu(); }
  /// Texts of all kernels, in order, if the options request them.
  const KernelTexts &getTexts() const { return texts; }

private:
  struct Pending {
    func::FuncOp kernel;
    SmallVector<int64_t> aliases;
    ::torch_ltc::runtime::Kernel *message;
    std::string source;
    KernelTexts texts;
  };

  LogicalResult
  compileEach(function_ref<LogicalResult(KernelCompiler &, size_t)> compileOne);
  std::string keyOf(StringRef name, StringRef source) const;
  LogicalResult compileOne(KernelCompiler &with, Pending &kernel) const;

  SymbolTable symbols;
  const LinalgCompileOptions &options;
  const KernelObjectCache &cache;
  ::torch_ltc::runtime::Executable &executable;
  KernelCompiler compiler; // of the caller's thread
  llvm::StringMap<unsigned> indexOfName;
  std::vector<Pending> pending;
  KernelTexts texts;
};

/// Sets the format version, producer, CPU and name of an executable.
void describeExecutable(const KernelSet &kernels,
                        const LinalgCompileOptions &options,
                        ::torch_ltc::runtime::Executable &executable);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CODEGEN_KERNELSET_H
