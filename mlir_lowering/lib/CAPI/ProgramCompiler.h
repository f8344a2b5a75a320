//===- ProgramCompiler.h - Lowering of a program ----------------*- C++ -*-===//

#ifndef TORCH_LTC_LIB_CAPI_PROGRAMCOMPILER_H
#define TORCH_LTC_LIB_CAPI_PROGRAMCOMPILER_H

#include "ProgramStorage.h"
#include "torch_ltc/Codegen/CompileLinalgModule.h"

#include "mlir/Pass/PassManager.h"

namespace mlir::torch_ltc {

/// Lowers one module, stage by stage.
class ProgramCompiler {
public:
  using StageText = std::function<void(StringRef stage, StringRef text)>;

  ProgramCompiler(LtcCompiler compiler, ModuleOp module, StageText stageText,
                  bool printLocations, bool verify, int threads = 1)
      : compiler(compiler), module(module), stageText(std::move(stageText)),
        printLocations(printLocations), verify(verify),
        threads(std::max(threads, 1)) {}

  LogicalResult lowerToContract();
  LogicalResult lowerToLinalg();
  /// Lowers a module at the torch-raw stage to the kernels stage, without
  /// compiling kernels.
  LogicalResult lowerToKernels(StringRef programName);
  FailureOr<std::string> compile(StringRef programName);
  /// Compiles a module at the tosa stage.
  FailureOr<std::string> compileTosa(StringRef programName);
  /// Compiles a module at the linalg stage.
  FailureOr<std::string> compileLinalg(StringRef programName);

  /// Compiles the samples, modules at the linalg stage, to one executable
  /// (compileGeneralModules).
  FailureOr<std::string> compileGeneral(ArrayRef<OwningOpRef<ModuleOp>> samples,
                                        const GeneralNumbers &numbers,
                                        StringRef programName);

  LtcCompileStatistics statistics = {};

private:
  LogicalResult run(void (*build)(OpPassManager &), double &seconds);
  LinalgCompileOptions codegenOptions(StringRef programName) const;
  void addStatistics(const LinalgCompileStatistics &codegen);

  LtcCompiler compiler;
  ModuleOp module;
  StageText stageText;
  bool printLocations;
  bool verify;
  unsigned threads;
};

/// A function that calls the options' callback; empty if there is none.
ProgramCompiler::StageText stageTextOf(const LtcCompileOptions *options);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CAPI_PROGRAMCOMPILER_H
