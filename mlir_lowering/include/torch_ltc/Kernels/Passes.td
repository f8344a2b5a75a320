//===- Passes.td - linalg on tensors -> kernels stage ------*- tablegen -*-===//

#ifndef TORCH_LTC_KERNELS_PASSES_TD
#define TORCH_LTC_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SelectLibraryCalls
    : Pass<"ltc-mlir-select-library-calls", "::mlir::ModuleOp"> {
  let summary = "converts matrix products to ltc.matmul";
  let description = [{
    `linalg.matmul` and `linalg.batch_matmul` become library calls. Transposes
    of the operands' last two dimensions become flags, operands broadcast along
    the batch become rank-2 operands, and the zero fill of the accumulator is
    removed.
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
  let summary = "splits large reductions to few elements into parts";
  let description = [{
    A large reduction with few parallel iterations would run on few threads. It
    becomes a reduction of equal parts and a reduction of their results.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def JoinInsertions : Pass<"ltc-mlir-join-insertions", "::mlir::ModuleOp"> {
  let summary = "converts long chains of insertions to joins";
  let description = [{
    A concatenation of many parts, or a chain of many writes to one tensor,
    becomes an `ltc.join` of the ranges that no later write overwrites, if the
    parts are contiguous or single indices; other concatenations become a tree
    of short concatenations. LLVM would take superlinear time to compile one
    kernel for the chain.
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
    fused and the tensor need not be stored.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def GroupOps : Pass<"ltc-mlir-group-ops", "::mlir::ModuleOp"> {
  let summary = "groups ops with a common iteration space";
  let description = [{
    Gives ops that will run as one kernel the same `torch_ltc.group`:
    elementwise chains, their reductions, ops that use the reductions row by row
    (softmax, layer norm), and siblings that read the same tensor. A group is a
    `FusionDomain`; an op joins the group of its latest operand if the group
    keeps enough parallel iterations.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def CombineProducts : Pass<"ltc-mlir-combine-products", "::mlir::ModuleOp"> {
  let summary = "combines independent matrix products into one";
  let description = [{
    Small independent products with the same right matrix become one product
    with the joined rows of the left matrices; a sum of products that each sum
    over the operands' rows becomes one product of joined operands (`ltc.join`).
    A recurrent layer has such products at each time step.
  }];
  let dependentDialects = ["::mlir::torch_ltc::ltc::LtcDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def RecomputeValues : Pass<"ltc-mlir-recompute-values", "::mlir::ModuleOp"> {
  let summary = "recomputes large inputs of groups";
  let description = [{
    If elementwise ops compute a large input of a group from tensors that the
    group reads anyway, or from fewer bytes, copies of these ops are placed in
    front of the group and marked for it. If anything changed, all groups are
    dissolved, and `ltc-mlir-group-ops` must run again.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def OverlapCollectives
    : Pass<"ltc-mlir-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "splits collectives into a begin and a finish";
  let description = [{
    A blocking collective, or a start and the wait for it, is replaced by
    `torch_ltc::collective_begin` and `torch_ltc::collective_finish`, which
    exchange the program's own memory. The outliner orders the commands so that
    as many as possible run between the two.
  }];
  let dependentDialects = ["::mlir::torch_ltc::ltc::LtcDialect"];
}

def OutlineKernels : Pass<"ltc-mlir-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "outlines each group of ops into a kernel function";
  let description = [{
    The ops of each `torch_ltc.group`, and each other computing op by itself,
    move into a private function on tensors, which the program calls with
    `ltc.kernel_call`. Constants, fills, empty tensors and scalar arithmetic
    are cloned into each kernel that needs them. Reshapes and contiguous
    slices stay in the program, where they cost nothing.
  }];
  let dependentDialects = ["::mlir::torch_ltc::ltc::LtcDialect",
                           "::mlir::linalg::LinalgDialect"];
}

def ScheduleKernels : Pass<"ltc-mlir-schedule-kernels", "::mlir::ModuleOp"> {
  let summary = "chooses the order, tiling and nests of kernels' loops";
  let description = [{
    Gives each kernel that is a `FusionDomain` the attribute
    `torch_ltc.schedule` (`#ltc.schedule`), which all later passes read. Other
    kernels (for example, scatters) get no schedule and are bufferized.
  }];
  let dependentDialects = ["::mlir::torch_ltc::ltc::LtcDialect"];
}

def PlanBuffers : Pass<"ltc-mlir-plan-buffers", "::mlir::ModuleOp"> {
  let summary = "places results in the arena, an output or a parameter";
  let description = [{
    Sets `torch_ltc.places` of each command (`#ltc.place` of each result),
    `torch_ltc.aliases` of kernel calls that write over an operand,
    `torch_ltc.place` of each result of the program, and `torch_ltc.arena_bytes`
    of the program. Kernels must be scheduled before, because the schedule
    determines whether a result may be written over an operand.
  }];
  let dependentDialects = ["::mlir::torch_ltc::ltc::LtcDialect"];
}

def GroupProgram : Pass<"ltc-mlir-group-program", "::mlir::ModuleOp"> {
  let summary = "makes the whole program one group";
  let description = [{
    Gives every computing op the same `torch_ltc.group`. Tests compare the
    results of such a program with those of the kernels that
    `ltc-mlir-group-ops` forms.
  }];
}

def DeduplicateKernels
    : Pass<"ltc-mlir-deduplicate-kernels", "::mlir::ModuleOp"> {
  let summary = "merges kernels of equal structure";
  let description = [{
    Names each kernel after the hash of its text, and keeps one kernel of each
    name.
  }];
}

#endif // TORCH_LTC_KERNELS_PASSES_TD
