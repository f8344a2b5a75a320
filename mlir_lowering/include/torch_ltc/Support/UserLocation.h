//===- UserLocation.h - The user's line for an op ---------------*- C++ -*-===//
//
// Ops carry their source as nested MLIR locations, from outside to inside: the
// name of the torch op, its number in the trace ("#42"), the module path, and
// file and line. Unknown parts are absent. Decomposition and lowering preserve
// the location.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_SUPPORT_USERLOCATION_H
#define TORCH_LTC_SUPPORT_USERLOCATION_H

#include "mlir/IR/Location.h"
#include <optional>
#include <string>

namespace mlir::torch_ltc {

/// Returns the location of an op. `opName` ("torch.aten.add.Tensor"), `file`
/// and `modulePath` may be empty, and `line` and `node` 0, if unknown.
Location makeUserLocation(MLIRContext *context, StringRef opName,
                          StringRef file, unsigned line, StringRef modulePath,
                          unsigned node = 0);

/// Whether the name of a `NameLoc` is that of an op, not of a module.
bool isOpName(StringRef name);
/// The number of an op in the trace if the name of a `NameLoc` encodes one.
std::optional<unsigned> getNodeNumber(StringRef name);

/// Returns text such as "train.py:12 in encoder.layer.0", or "" if nothing is
/// known.
std::string describeUserLocation(Location loc);

/// Returns text such as " (train.py:12 in encoder.layer.0)" for the end of a
/// sentence, or "".
std::string userLocationSuffix(Location loc);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_SUPPORT_USERLOCATION_H
