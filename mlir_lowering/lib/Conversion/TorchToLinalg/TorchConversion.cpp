//===- TorchConversion.cpp - Conversion out of the torch dialect ----------===//

#include "TorchConversion.h"

#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"

#include "mlir/Dialect/Func/Transforms/FuncConversions.h"

using namespace mlir;
using namespace mlir::torch_ltc;

bool torch_ltc::isLookedThrough(Operation *op) {
  return isa<torch::PrimListConstructOp, torch::ConstantNoneOp,
             torch::ConstantIntOp, torch::ConstantFloatOp,
             torch::ConstantBoolOp, torch::ConstantStrOp,
             torch::ConstantDeviceOp>(op);
}

static void setLegality(ConversionTarget &target,
                        const TypeConverter &converter,
                        function_ref<bool(Operation *)> isLegalOp) {
  target.addLegalOp<ModuleOp>();
  target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp function) {
    return converter.isSignatureLegal(function.getFunctionType()) &&
           converter.isLegal(&function.getBody());
  });
  target.addDynamicallyLegalOp<func::ReturnOp, func::CallOp>(
      [&](Operation *op) { return converter.isLegal(op); });
  // The ops of the torch dialect are neither legal nor illegal: the driver then
  // tries each op, even after one has failed, and each op that fails reports
  // its own error.
  target.markUnknownOpDynamicallyLegal(
      [isLegalOp](Operation *op) -> std::optional<bool> {
        if (isa<torch::TorchDialect>(op->getDialect()) && !isLookedThrough(op))
          return std::nullopt;
        return isLookedThrough(op) || isa<UnrealizedConversionCastOp>(op) ||
               isLegalOp(op);
      });
}

/// Erases constants, lists and their casts that have no users.
static void eraseUnused(ModuleOp module) {
  SmallVector<Operation *> candidates;
  module.walk([&](Operation *op) {
    if (isLookedThrough(op) || isa<UnrealizedConversionCastOp>(op))
      candidates.push_back(op);
  });
  for (Operation *op : llvm::reverse(candidates))
    if (op->use_empty())
      op->erase();
}

LogicalResult
torch_ltc::convertTorchModule(ModuleOp module, const TypeConverter &converter,
                              RewritePatternSet patterns,
                              function_ref<bool(Operation *)> isLegalOp) {
  populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns,
                                                                 converter);
  populateReturnOpTypeConversionPattern(patterns, converter);
  populateCallOpTypeConversionPattern(patterns, converter);
  ConversionTarget target(*module.getContext());
  setLegality(target, converter, isLegalOp);
  if (failed(applyPartialConversion(module, target, std::move(patterns))))
    return failure();
  eraseUnused(module);
  bool left = false;
  module.walk([&](Operation *op) {
    left |= isa<torch::TorchDialect>(op->getDialect()) ||
            isa<UnrealizedConversionCastOp>(op);
  });
  return failure(left);
}
