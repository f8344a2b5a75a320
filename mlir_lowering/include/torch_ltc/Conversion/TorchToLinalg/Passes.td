//===- Passes.td - torch dialect -> linalg on tensors ------*- tablegen -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_PASSES_TD
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertTorchToLinalgPass
    : Pass<"ltc-mlir-convert-torch-to-linalg", "::mlir::ModuleOp"> {
  let summary = "torch dialect at the backend contract to linalg";
  let description = [{
    Functions on `!torch.vtensor` become functions on static-shape builtin
    tensors; `!torch.int` and `!torch.float` parameters become i64 and f64.
    Convolutions and long attention become library calls, ops that PyTorch's own
    kernels compute become `ltc.host_call`.

    An op that has no lowering is an error that names the op and the user's
    line; all of them are reported, not only the first.

    Indices that a tensor holds are wrapped (negative ones, where torch wraps
    them) and then clamped into range: an index that torch would refuse reads
    or writes the nearest element instead of foreign memory.
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
  let summary = "convolutions of the library as linalg";
  let description = [{
    For compilers that don't have our library: `ltc.convolution` and
    its gradients become `tensor.insert_slice` into zeros and one
    `linalg.generic`. Sums of 16-bit floats are made in f32. `ltc.check_bounds`
    is left out: an index out of range isn't refused then.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_PASSES_TD
