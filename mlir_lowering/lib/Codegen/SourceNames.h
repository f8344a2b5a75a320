//===- SourceNames.h - What a command computes, for people ------*- C++ -*-===//

#ifndef TORCH_LTC_LIB_CODEGEN_SOURCENAMES_H
#define TORCH_LTC_LIB_CODEGEN_SOURCENAMES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

#include <string>

namespace mlir::torch_ltc {

struct SourceNames {
  std::string ops;     ///< "aten.add+aten.relu"; empty if unknown
  std::string line;    ///< "train.py:31"; empty if unknown
  std::string modules; ///< "body.0+body.1"; empty if unknown
  /// Numbers of the traced ops, in no order.
  llvm::SmallVector<unsigned> nodes;
};

/// Collects the names ("aten.add" as a NameLoc), the module paths (other
/// NameLocs), the ops' numbers and the first file and line in a location and
/// all that it was fused from.
SourceNames getSourceNames(Location location);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CODEGEN_SOURCENAMES_H
