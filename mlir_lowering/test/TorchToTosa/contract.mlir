// RUN: ltc-opt %s --ltc-torch-to-tosa --verify-diagnostics
// RUN: ltc-opt %s --ltc-torch-to-stablehlo --verify-diagnostics

// Our linalg has an op for sorting, TOSA and StableHLO here haven't: their contract
// says so.

func.func @sort(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %0 = torch.constant.int 0
  %false = torch.constant.bool false
  // expected-error@+1 {{BC4}}
  %v, %i = torch.aten.sort %a, %0, %false : !torch.vtensor<[4],f32>, !torch.int, !torch.bool -> !torch.vtensor<[4],f32>, !torch.vtensor<[4],si64>
  return %v : !torch.vtensor<[4],f32>
}
