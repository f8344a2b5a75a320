// RUN: ltc-opt %s --ltc-torch-to-tosa --verify-diagnostics
// RUN: ltc-opt %s --ltc-torch-to-stablehlo --verify-diagnostics

// Our linalg has loops for a running maximum; TOSA and StableHLO don't have
// them here, and their contract reports it.

func.func @running_maximum(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %0 = torch.constant.int 0
  // expected-error@+1 {{BC4}}
  %v, %i = torch.aten.cummax %a, %0 : !torch.vtensor<[4],f32>, !torch.int -> !torch.vtensor<[4],f32>, !torch.vtensor<[4],si64>
  return %v : !torch.vtensor<[4],f32>
}
