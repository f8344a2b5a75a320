//===- Passes.td - torch dialect -> TOSA -------------------*- tablegen -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOTOSA_PASSES_TD
#define TORCH_LTC_CONVERSION_TORCHTOTOSA_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertTorchToTosaPass
    : Pass<"ltc-mlir-convert-torch-to-tosa", "::mlir::ModuleOp"> {
  let summary = "converts the torch dialect to TOSA";
  let description = [{
    Functions on `!torch.vtensor` become functions of TOSA 1.0 on static-shape
    tensors, with 64-bit integers. `!torch.int` and `!torch.float` parameters
    become `tensor<i64>` and `tensor<f32>`.

    Each op that TOSA can't express is reported as an error that names the op,
    the reason and the user's line. An index out of range, which PyTorch
    rejects, selects the nearest element.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tosa::TosaDialect"
  ];
}

def ConvertTosaExtremesPass
    : Pass<"ltc-mlir-convert-tosa-extremes", "::mlir::func::FuncOp"> {
  let summary = "converts tosa.reduce_max and reduce_min of floats to linalg";
  let description = [{
    The reductions start with an infinity. MLIR's own lowering (LLVM 22) starts
    a maximum with the lowest finite number, so the maximum of elements that are
    all -inf would be finite.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

#endif // TORCH_LTC_CONVERSION_TORCHTOTOSA_PASSES_TD
