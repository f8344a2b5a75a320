//===- UnifyModules.h - One module for all sizes ----------------*- C++ -*-===//
//
// A general program is lowered at several vectors of stand-ins for the sizes
// that vary. These functions unify the results to one module: sizes that differ
// are `?`, numbers that differ are computed from sizes of parameters.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_SYMBOLIC_UNIFYMODULES_H
#define TORCH_LTC_SYMBOLIC_UNIFYMODULES_H

#include "torch_ltc/Codegen/CompileLinalgModule.h"

#include "mlir/IR/OwningOpRef.h"

namespace mlir::torch_ltc {

/// A size that varies.
struct SymbolicSize {
  std::string name;
  int64_t least, most; ///< for which the program is valid
  SizeSamples standIns;
};

/// On a parameter that is the value of a symbol which no tensor has as a size:
/// the symbol's name.
inline constexpr llvm::StringLiteral kSymbolAttr = "torch_ltc.symbol";

/// Unifies the modules at the torch stage. `checked`: sizes of the traced
/// program. Emits an error, which names the op and the user's line, if a number
/// is no known function of the sizes. Symbols that no tensor has as a size are
/// the function's last parameters, in their order; `parameters` tells which.
FailureOr<OwningOpRef<ModuleOp>>
unifyTorchModules(ArrayRef<ModuleOp> samples, ArrayRef<SymbolicSize> symbols,
                  ArrayRef<SizeSamples> checked,
                  SmallVectorImpl<bool> &parameters);

/// A serialized `GeneralForm` whose checks are the sizes of the traced program:
/// a result that is as large as a slice's bound at the stand-ins may be smaller
/// at other sizes. Emits an error if there is none.
FailureOr<std::string> sizeChecks(ModuleOp module,
                                  ArrayRef<SymbolicSize> symbols,
                                  ArrayRef<SizeSamples> checked);

/// Succeeds if two modules at the torch stage are the same program, whatever
/// the order of their constants; otherwise emits an error with the difference.
LogicalResult verifySameTorchModule(ModuleOp module, ModuleOp other);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_SYMBOLIC_UNIFYMODULES_H
