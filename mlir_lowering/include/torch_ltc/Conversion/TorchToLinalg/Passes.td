//===- Passes.td - torch dialect -> linalg on tensors ------*- tablegen -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_PASSES_TD
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertTorchToLinalgPass
    : Pass<"ltc-mlir-convert-torch-to-linalg", "::mlir::ModuleOp"> {
  let summary = "converts programs that satisfy the backend contract to linalg";
  let description = [{
    Functions on `!torch.vtensor` become functions on static-shape builtin
    tensors; `!torch.int` and `!torch.float` parameters become i64 and f64.
    Convolutions and long attention become library calls, and ops that PyTorch's
    own kernels compute become `ltc.host_call`.

    Each op without a lowering is reported as an error that names the op and the
    user's line.

    Negative indices from a tensor are wrapped where torch wraps them, and then
    all indices are clamped into range: an index that torch would reject
    accesses the nearest element instead of memory outside the tensor.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::mlir::torch_ltc::ltc::LtcDialect"
  ];
}

def ExpandLibraryCallsPass
    : Pass<"ltc-mlir-expand-library-calls", "::mlir::func::FuncOp"> {
  let summary = "expands library convolutions to linalg";
  let description = [{
    Removes what needs our runtime, for other compilers: `ltc.convolution` and
    its gradients become `tensor.insert_slice` into zeros and one
    `linalg.generic`. Sums of 16-bit floats are computed in f32.
    `ltc.check_bounds` is removed, so that an index out of range isn't an error.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_PASSES_TD
