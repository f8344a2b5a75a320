// RUN: ltc-opt %s --ltc-torch-to-tosa --verify-diagnostics
// RUN: ltc-opt %s --ltc-torch-to-stablehlo --verify-diagnostics

// A running maximum is only lowered to linalg, because its lowering uses loops.
// For TOSA and StableHLO, the backend contract rejects the op.

func.func @running_maximum(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %0 = torch.constant.int 0
  // expected-error@+1 {{BC4}}
  %v, %i = torch.aten.cummax %a, %0 : !torch.vtensor<[4],f32>, !torch.int -> !torch.vtensor<[4],f32>, !torch.vtensor<[4],si64>
  return %v : !torch.vtensor<[4],f32>
}
