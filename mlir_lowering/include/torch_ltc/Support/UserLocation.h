//===- UserLocation.h - The user's line that an op comes from ---*- C++ -*-===//
//
// Ops carry what the user wrote as an MLIR location: the name of the torch op
// around its number in the trace ("#42") around the module path around file and
// line, each part only where it is known. Decomposition and lowering keep it.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_SUPPORT_USERLOCATION_H
#define TORCH_LTC_SUPPORT_USERLOCATION_H

#include "mlir/IR/Location.h"
#include <optional>
#include <string>

namespace mlir::torch_ltc {

/// `opName` ("torch.aten.add.Tensor"), `file` and `modulePath` may be empty,
/// `line` and `node` 0.
Location makeUserLocation(MLIRContext *context, StringRef opName,
                          StringRef file, unsigned line, StringRef modulePath,
                          unsigned node = 0);

/// Whether a `NameLoc`'s name is that of an op, not of a module.
bool isOpName(StringRef name);
/// The number of an op in the trace that a `NameLoc`'s name stands for.
std::optional<unsigned> getNodeNumber(StringRef name);

/// "train.py:12 in encoder.layer.0", or an empty text where nothing is known.
std::string describeUserLocation(Location loc);

/// " (train.py:12 in encoder.layer.0)", to end a sentence with.
std::string userLocationSuffix(Location loc);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_SUPPORT_USERLOCATION_H
