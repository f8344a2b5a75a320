//===- ProgramStorage.h - Storage behind the handles of the C API ---------===//

#ifndef TORCH_LTC_LIB_CAPI_PROGRAMSTORAGE_H
#define TORCH_LTC_LIB_CAPI_PROGRAMSTORAGE_H

#include "torch_ltc-c/lowering.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/ThreadPool.h"
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

/// A context with all dialects.
struct LtcCompilerContext {
  LtcCompilerContext();

  // One worker suffices, because compilation runs in the caller's thread, but
  // the context must remain multithreaded so that several callers can share it.
  llvm::DefaultThreadPool pool{llvm::hardware_concurrency(1)};
  mlir::MLIRContext context;
};

struct LtcCompilerStorage {
  /// Returns the context, which is created on demand. `releaseMemory` drops it,
  /// because a context never frees types or attributes.
  std::shared_ptr<LtcCompilerContext> get();
  void releaseMemory();

  LtcKernelCache kernelCache = {};

private:
  std::mutex mutex;
  std::shared_ptr<LtcCompilerContext> current;
};

struct LtcProgramStorage {
  LtcProgramStorage(LtcCompiler compiler,
                    std::shared_ptr<LtcCompilerContext> home,
                    llvm::StringRef name);

  mlir::MLIRContext *context() const { return &home->context; }

  LtcCompiler compiler;
  /// The context of the module.
  std::shared_ptr<LtcCompilerContext> home;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  /// Inserts at the end of the function's block.
  mlir::OpBuilder builder;
  /// The program's values by `LtcValue.id`.
  std::vector<mlir::Value> values;
  /// Constants by type and value: equal ones share one SSA value.
  llvm::DenseMap<std::pair<mlir::Type, mlir::Attribute>, LtcValue> constants;
  /// First error in a call that can't return a status; the next call that
  /// returns a status returns this error.
  std::string error;
  bool finished = false;

  LtcValue define(mlir::Value value);
  /// Returns null, and sets `error`, if this program has no such value.
  mlir::Value get(LtcValue value);
  void setError(const llvm::Twine &message);
};

namespace mlir::torch_ltc {

/// Element type of the torch dialect: si64, ui8, i1, f32, ...; null if `dtype`
/// isn't one of the enumerators.
Type torchDType(MLIRContext *context, LtcDType dtype);

LtcStatus makeStatus(const llvm::Twine &message);

/// Collects this thread's diagnostics, but not those of other threads that use
/// the same context.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(MLIRContext *context);

  /// The errors, one on each line; `fallback` if none was reported.
  std::string text(const Twine &fallback) const;

private:
  std::thread::id thread = std::this_thread::get_id();
  std::string errors;
  ScopedDiagnosticHandler handler;
};

/// Returns an error if the program has no outputs yet or was already compiled.
LtcStatus checkFinished(LtcProgram program);

/// Returns a copy for torch-mlir, in which ops that torch-mlir doesn't define
/// are `torch.operator`.
OwningOpRef<ModuleOp> exportTorchModule(ModuleOp module);

std::string printModule(ModuleOp module, bool printLocations);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CAPI_PROGRAMSTORAGE_H
