//===- compiler_library.h - mlir_lowering, loaded on demand -----*- C++ -*-===//
//
// MLIR and LLVM are 250 MB of libraries, which a process never needs if all its
// programs are in the disk cache. They are loaded at the first compilation.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_COMPILER_LIBRARY_H
#define TORCH_LTC_COMPILATION_COMPILER_LIBRARY_H

#include "torch_ltc-c/lowering.h"

#include <string>

namespace torch_ltc {

/// The functions of lowering.h that the backend calls.
#define LTC_COMPILER_FUNCTIONS(F)                                              \
  F(ltcCompilerCreate)                                                         \
  F(ltcCompilerReleaseMemory)                                                  \
  F(ltcSetCompilationsCancelled)                                               \
  F(ltcCompilerSetKernelCache)                                                 \
  F(ltcProgramCreate)                                                          \
  F(ltcProgramCreateInContextOf)                                               \
  F(ltcProgramDestroy)                                                         \
  F(ltcProgramAddTensorParameter)                                              \
  F(ltcProgramAddIntParameter)                                                 \
  F(ltcProgramAddFloatParameter)                                               \
  F(ltcProgramConstantNone)                                                    \
  F(ltcProgramConstantInt)                                                     \
  F(ltcProgramConstantFloat)                                                   \
  F(ltcProgramConstantBool)                                                    \
  F(ltcProgramConstantString)                                                  \
  F(ltcProgramList)                                                            \
  F(ltcProgramNumberToTensor)                                                  \
  F(ltcProgramAppend)                                                          \
  F(ltcProgramSetOutputs)                                                      \
  F(ltcProgramCompile)                                                         \
  F(ltcProgramsCompileGeneral)                                                 \
  F(ltcProgramStage)                                                           \
  F(ltcProgramsSymbolicStage)                                                  \
  F(ltcModuleSpecialize)                                                       \
  F(ltcModuleCompile)

struct CompilerLibrary {
  std::string path;
  LtcCompiler compiler = nullptr;
#define LTC_DECLARE(Name) decltype(&::Name) Name = nullptr;
  LTC_COMPILER_FUNCTIONS(LTC_DECLARE)
#undef LTC_DECLARE
};

/// Returns the library. The first call loads it and creates the process's
/// compiler. Throws std::runtime_error, with instructions, if the library can't
/// be loaded.
const CompilerLibrary &compilerLibrary();

/// Path of the compiler's library; doesn't load it.
std::string compilerLibraryPath();

/// While an object of this class exists, compilations in all threads fail soon.
class CancelledCompilations {
public:
  CancelledCompilations();
  ~CancelledCompilations();
  CancelledCompilations(const CancelledCompilations &) = delete;
  CancelledCompilations &operator=(const CancelledCompilations &) = delete;
};

/// Whether a CancelledCompilations object exists; if so, a failed compilation
/// isn't reported as an error.
bool areCompilationsCancelled();

/// Whether `compilerLibrary` has loaded the library.
bool isCompilerLoaded();

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_COMPILER_LIBRARY_H
