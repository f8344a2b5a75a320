//===- TorchConversion.h - Conversion out of the torch dialect --*- C++ -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_TORCHCONVERSION_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_TORCHCONVERSION_H

#include "mlir/Transforms/DialectConversion.h"

namespace mlir::torch_ltc {

/// Whether the op is a constant or a list. Lowerings read these directly, so
/// the conversion doesn't convert them.
bool isLookedThrough(Operation *op);

/// Converts the functions of `module` with `patterns`, which lower the
/// functions' ops. `isLegalOp` returns whether an op belongs to the target.
/// Fails if an op of the torch dialect remains; an error is emitted for each op
/// that can't be lowered.
LogicalResult convertTorchModule(ModuleOp module,
                                 const TypeConverter &converter,
                                 RewritePatternSet patterns,
                                 function_ref<bool(Operation *)> isLegalOp);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_TORCHCONVERSION_H
