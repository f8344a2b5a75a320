//===- Passes.td - torch dialect -> StableHLO --------------*- tablegen -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOSTABLEHLO_PASSES_TD
#define TORCH_LTC_CONVERSION_TORCHTOSTABLEHLO_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertTorchToStablehloPass
    : Pass<"ltc-mlir-convert-torch-to-stablehlo", "::mlir::ModuleOp"> {
  let summary = "converts the torch dialect to StableHLO";
  let description = [{
    Functions on `!torch.vtensor` become functions of StableHLO on static-shape
    tensors. `!torch.int` and `!torch.float` parameters become `tensor<i64>` and
    `tensor<f64>`. A module's only function is renamed to `main`, the entry
    point of StableHLO runners.

    Each op that StableHLO can't express is reported as an error that names the
    op, the reason and the user's line. Positions out of range, which PyTorch
    rejects, read the nearest element.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::torch_ltc::stablehlo::StablehloDialect"
  ];
}

#endif // TORCH_LTC_CONVERSION_TORCHTOSTABLEHLO_PASSES_TD
