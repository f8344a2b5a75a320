//===- Passes.td - Kernel on tensors -> LLVM dialect -------*- tablegen -*-===//

#ifndef TORCH_LTC_CODEGEN_PASSES_TD
#define TORCH_LTC_CODEGEN_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerToLoops : Pass<"ltc-mlir-lower-to-loops", "::mlir::ModuleOp"> {
  let summary = "lowers kernels of fused ops to loops over memory";
  let description = [{
    Each kernel with a schedule (`torch_ltc.schedule`) becomes a function whose
    arguments are a one-dimensional memref for each operand and result, and the
    range [begin, end) of parallel iterations. Other kernels are unchanged.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::arith::ArithDialect"];
}

def BindBuffers : Pass<"ltc-mlir-bind-buffers", "::mlir::ModuleOp"> {
  let summary = "converts kernels' operands and results to memrefs";
  let description = [{
    A kernel `(tensors) -> tensors` becomes a function whose arguments are a
    contiguous memref for each operand and result, and the range [begin, end) of
    iterations (unused, because the kernel has one iteration). It is then ready
    for one-shot bufferization. Scalar parameters are loaded from one-element
    memrefs.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
                           "::mlir::memref::MemRefDialect"];
}

def LowerCopies : Pass<"ltc-mlir-lower-copies", "::mlir::ModuleOp"> {
  let summary = "lowers memref.copy to loops";
  let description = [{
    Replaces memref.copy by linalg.copy, which later passes lower to loops. A
    strided memref.copy would otherwise become a call to MLIR's C runner
    library, which isn't available at run time.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def ExpandMath : Pass<"ltc-mlir-expand-math", "::mlir::ModuleOp"> {
  let summary = "expands math functions, bfloat16 and integer division";
  let description = [{
    f32 functions become MLIR's polynomials if these are accurate; sin, cos and
    pow stay calls, which LLVM vectorizes with libmvec. bfloat16 arithmetic runs
    in f32. Integer divisions don't trap: division by zero yields 0, and an
    overflowing division by -1 yields the negated dividend.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // TORCH_LTC_CODEGEN_PASSES_TD
