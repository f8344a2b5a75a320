//===- UnifyModules.h - One module for all sizes ----------------*- C++ -*-===//
//
// A general program is lowered at several vectors of stand-ins for the sizes
// that vary. These functions unify the results into one module, in which sizes
// that differ are `?` and numbers that differ are computed from sizes of
// parameters.
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
  int64_t least, most; ///< the range for which the program is valid
  SizeSamples standIns;
};

/// Attribute of a parameter that passes the value of a symbol, because no size
/// determines this value. The attribute is the symbol's name.
inline constexpr llvm::StringLiteral kSymbolAttr = "torch_ltc.symbol";

/// Unifies the modules at the torch stage. `checked`: sizes of the traced
/// program. Emits an error, which names the op and the user's line, if a number
/// isn't a known function of the sizes. Symbols whose value no size of a
/// parameter determines become the function's last parameters, in the order of
/// symbols; `parameters` receives true for each of them.
FailureOr<OwningOpRef<ModuleOp>>
unifyTorchModules(ArrayRef<ModuleOp> samples, ArrayRef<SymbolicSize> symbols,
                  ArrayRef<SizeSamples> checked,
                  SmallVectorImpl<bool> &parameters);

/// Returns a serialized `GeneralForm` whose checks are the sizes of the traced
/// program, which may be wrong at other sizes: for example, a result that is as
/// large as a slice's bound at the stand-ins may be smaller. Emits an error if
/// a size isn't a known function of the symbols.
FailureOr<std::string> sizeChecks(ModuleOp module,
                                  ArrayRef<SymbolicSize> symbols,
                                  ArrayRef<SizeSamples> checked);

/// Succeeds if two modules at the torch stage are the same program, up to the
/// order of their constants; otherwise emits an error with the difference.
LogicalResult verifySameTorchModule(ModuleOp module, ModuleOp other);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_SYMBOLIC_UNIFYMODULES_H
