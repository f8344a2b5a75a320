//===- Passes.td - linalg on tensors -> kernels stage ------*- tablegen -*-===//

#ifndef TORCH_LTC_KERNELS_PASSES_TD
#define TORCH_LTC_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SelectLibraryCalls
    : Pass<"ltc-mlir-select-library-calls", "::mlir::ModuleOp"> {
  let summary = "converts matrix products to ltc.matmul";
  let description = [{
    `linalg.matmul` and `linalg.batch_matmul` become library calls. Operands
    that are transposes of the last two dimensions become flags, operands
    broadcast along the batch become rank-2 operands, and the zero fill of the
    accumulator is removed.
  }];
  let dependentDialects = ["::mlir::torch_ltc::ltc::LtcDialect"];
}

def NormalizeOps : Pass<"ltc-mlir-normalize-ops", "::mlir::ModuleOp"> {
  let summary = "normalizes named ops, strided slices and concatenations";
  let description = [{
    Named linalg ops and slices that are not contiguous become linalg.generic,
    so that they can be fused; concatenations and paddings become insertions;
    rank-0 tensors of one scalar become fills.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::arith::ArithDialect"];
}

def SplitReductions : Pass<"ltc-mlir-split-reductions", "::mlir::ModuleOp"> {
  let summary = "splits reductions to one element into parts";
  let description = [{
    A large reduction with (nearly) no parallel loop would run on one thread. It
    becomes a reduction of equal parts and a reduction of their results.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def JoinInsertions : Pass<"ltc-mlir-join-insertions", "::mlir::ModuleOp"> {
  let summary = "converts long chains of insertions to joins";
  let description = [{
    A concatenation of many parts, or many writes to one tensor, become an
    `ltc.join` of the remaining range of each, if these are contiguous or single
    indices; other concatenations become a tree of short ones. LLVM would take
    superlinear time to compile one kernel for the chain.
  }];
  let dependentDialects = ["::mlir::torch_ltc::ltc::LtcDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def DuplicateProducers
    : Pass<"ltc-mlir-duplicate-producers", "::mlir::ModuleOp"> {
  let summary = "recomputes cheap ops for each user";
  let description = [{
    Broadcasts, slices, conversions and other elementwise ops that read little
    more than they write get a copy for each user, so that each copy can be
    fused and the tensor need not exist.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def GroupOps : Pass<"ltc-mlir-group-ops", "::mlir::ModuleOp"> {
  let summary = "groups ops with a common iteration space";
  let description = [{
    Gives ops that will run as one kernel the same `ltc.group`: elementwise
    chains, their reductions, ops that use the reductions row by row (softmax,
    layer norm), and siblings that read the same tensor. A group is a
    `FusionDomain`; an op joins the group of its latest operand if it leaves
    enough parallel iterations.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def CombineProducts : Pass<"ltc-mlir-combine-products", "::mlir::ModuleOp"> {
  let summary = "combines independent matrix products into one";
  let description = [{
    Small independent products with the same matrix become one product of joined
    rows; a sum of products over the operands' rows becomes one product of
    joined operands (`ltc.join`). A recurrent layer has such products at each
    time step.
  }];
  let dependentDialects = ["::mlir::torch_ltc::ltc::LtcDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def RecomputeValues : Pass<"ltc-mlir-recompute-values", "::mlir::ModuleOp"> {
  let summary = "recomputes large inputs of groups";
  let description = [{
    If elementwise ops compute a large input of a group from tensors that the
    group reads anyway, or from fewer bytes, they are copied in front of the
    group and marked for it. If anything changed, all groups are dissolved, and
    `ltc-mlir-group-ops` must run again.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def OverlapCollectives
    : Pass<"ltc-mlir-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "divides collectives into a beginning and an end";
  let description = [{
    A collective that blocks, and a start with the wait for it, become
    `torch_ltc::collective_begin` and `torch_ltc::collective_finish`, which
    exchange the program's own memory. The outliner's order of commands puts as
    much as possible between the two.
  }];
  let dependentDialects = ["::mlir::torch_ltc::ltc::LtcDialect"];
}

def OutlineKernels : Pass<"ltc-mlir-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "outlines each group of ops into a kernel function";
  let description = [{
    Ops with an equal `ltc.group` number, and every other computing op by
    itself, move into private functions on tensors that the program calls with
    `ltc.kernel_call`. Constants, fills, empty tensors and scalar arithmetic
    are cloned into each kernel that needs them. Reshapes and contiguous
    slices stay in the program: they cost nothing there.
  }];
  let dependentDialects = ["::mlir::torch_ltc::ltc::LtcDialect",
                           "::mlir::linalg::LinalgDialect"];
}

def ScheduleKernels : Pass<"ltc-mlir-schedule-kernels", "::mlir::ModuleOp"> {
  let summary = "kernels get the order, tiling and nests of their loops";
  let description = [{
    Gives each kernel that is a `FusionDomain` the attribute
    `torch_ltc.schedule` (`#ltc.schedule`), which everything after it reads.
    Other kernels (scatters, insertions) stay without: they are bufferized.
  }];
  let dependentDialects = ["::mlir::torch_ltc::ltc::LtcDialect"];
}

def PlanBuffers : Pass<"ltc-mlir-plan-buffers", "::mlir::ModuleOp"> {
  let summary = "results get a place in the arena, an output or a parameter";
  let description = [{
    Gives each command `torch_ltc.places` (`#ltc.place` of each result), kernel
    calls that write over an operand `torch_ltc.aliases`, each result of the
    program `torch_ltc.place` and the program `torch_ltc.arena_bytes`. Kernels
    have to be scheduled: only a schedule says whether a result may be written
    over an operand.
  }];
  let dependentDialects = ["::mlir::torch_ltc::ltc::LtcDialect"];
}

def GroupProgram : Pass<"ltc-mlir-group-program", "::mlir::ModuleOp"> {
  let summary = "the whole program becomes one group";
  let description = [{
    Gives every computing op the same `ltc.group`. Tests compare the real
    grouping with this one.
  }];
}

def DeduplicateKernels
    : Pass<"ltc-mlir-deduplicate-kernels", "::mlir::ModuleOp"> {
  let summary = "kernels of equal structure become one";
  let description = [{
    Names each kernel after the hash of its text and keeps one of each.
  }];
}

#endif // TORCH_LTC_KERNELS_PASSES_TD
