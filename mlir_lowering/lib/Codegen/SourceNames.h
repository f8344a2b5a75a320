//===- SourceNames.h - Source names of a command, for people ----*- C++ -*-===//

#ifndef TORCH_LTC_LIB_CODEGEN_SOURCENAMES_H
#define TORCH_LTC_LIB_CODEGEN_SOURCENAMES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

#include <string>

namespace mlir::torch_ltc {

/// All in the order in which the location contains them.
struct SourceNames {
  SmallVector<StringRef> ops;     ///< "aten.add"
  SmallVector<std::string> lines; ///< "train.py:31"
  SmallVector<StringRef> modules; ///< "body.0"
  SmallVector<unsigned> nodes;    ///< numbers of the traced ops
};

/// Collects the names ("aten.add" as a NameLoc), the module paths (other
/// NameLocs), the ops' numbers, and the files and lines in a location and all
/// locations that were fused into it.
SourceNames getSourceNames(Location location);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CODEGEN_SOURCENAMES_H
