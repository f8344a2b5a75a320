//===- SourceNames.h - Source names of a command, for users -----*- C++ -*-===//

#ifndef TORCH_LTC_LIB_CODEGEN_SOURCENAMES_H
#define TORCH_LTC_LIB_CODEGEN_SOURCENAMES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

#include <string>

namespace mlir::torch_ltc {

/// The sources that a location names, in the order in which it names them.
struct SourceNames {
  SmallVector<StringRef> ops;     ///< "aten.add"
  SmallVector<std::string> lines; ///< "train.py:31"
  SmallVector<StringRef> modules; ///< "body.0"
  SmallVector<unsigned> nodes;    ///< numbers of the traced ops
};

/// Collects the ops' names (NameLoc "torch.aten.add"), their numbers (NameLoc
/// "#42"), the module paths (other NameLocs), and the files and lines in a
/// location and all locations that were fused into it.
SourceNames getSourceNames(Location location);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CODEGEN_SOURCENAMES_H
