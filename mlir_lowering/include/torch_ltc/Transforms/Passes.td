//===- Passes.td - Passes within the torch dialect ---------*- tablegen -*-===//

#ifndef TORCH_LTC_TRANSFORMS_PASSES_TD
#define TORCH_LTC_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def DecomposeOpsPass : Pass<"ltc-mlir-decompose-ops", "::mlir::func::FuncOp"> {
  let summary = "Rewrite compound torch ops as simpler torch ops";
  let description = [{
    Softmax, normalization, losses and similar ops become elementwise ops,
    reductions, views and matrix products of the torch dialect. `legal-ops`
    lists ops that the target supports directly. An op whose decomposition
    doesn't support its operands is an error.
  }];
  let dependentDialects = ["::mlir::torch_ltc::torch::TorchDialect"];
  let options = [
    ListOption<"legalOps", "legal-ops", "std::string",
               "Ops that stay as they are, such as aten._softmax">,
    Option<"portable", "portable", "bool", /*default=*/"false",
           "Also decompose ops that other compilers don't lower">,
  ];
}

def ExportOperatorsPass : Pass<"ltc-mlir-export-operators"> {
  let summary = "Write ops that torch-mlir doesn't define as torch.operator";
  let description = [{
    The dialect defines some ops that torch-mlir's doesn't (rows with
    `torch_mlir = false` in the op table). After this pass a module contains
    none of them, so that torch-mlir's parser and verifier accept it.
    `ltc-mlir-import-operators` is the inverse.
  }];
}

def ImportOperatorsPass : Pass<"ltc-mlir-import-operators"> {
  let summary = "Turn torch.operator into the dialect's op of that name";
  let description = [{
    A `torch.operator` whose name the dialect doesn't define is unchanged.
  }];
}

def VerifyBackendContractPass
    : Pass<"ltc-mlir-verify-backend-contract", "::mlir::ModuleOp"> {
  let summary = "Check what the lowerings of the torch dialect rely on";
  let description = [{
    The rules are numbered in docs/backend_contract.md. Every violation is an
    error that names the rule, the op and the user's line.
  }];
  let options = [
    ListOption<"legalOps", "legal-ops", "std::string",
               "Ops that this target supports besides those of the op table "
               "that are lowered to linalg or to a library, e.g. aten.addmm">,
    ListOption<"targetOps", "target-ops", "std::string",
               "All ops that this target supports, in place of those of the op "
               "table">,
    Option<"allowDynamicSizes", "allow-dynamic-sizes", "bool", "false",
           "The target supports tensors of known rank with unknown sizes">
  ];
}

#endif // TORCH_LTC_TRANSFORMS_PASSES_TD
