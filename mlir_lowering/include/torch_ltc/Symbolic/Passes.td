//===- Passes.td - Passes of programs for all sizes --------*- tablegen -*-===//

#ifndef TORCH_LTC_SYMBOLIC_PASSES_TD
#define TORCH_LTC_SYMBOLIC_PASSES_TD

include "mlir/Pass/PassBase.td"

def SpecializeSizesPass : Pass<"ltc-mlir-specialize-sizes", "::mlir::ModuleOp"> {
  let summary = "Replace symbols by their values in a program for all sizes";
  let description = [{
    Each tensor gets the sizes that `torch.bind_symbolic_shape` states, and ops
    that compute sizes are folded. The result is the program that would be
    traced at these sizes.
  }];
  let dependentDialects = ["::mlir::torch_ltc::torch::TorchDialect"];
  let options = [
    ListOption<"sizes", "sizes", "std::string",
               "The value of each symbol, such as s0=4">,
  ];
}

#endif // TORCH_LTC_SYMBOLIC_PASSES_TD
