// RUN: ltc-opt %s --ltc-mlir-convert-torch-to-stablehlo --split-input-file --verify-diagnostics

func.func @unknown(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  // expected-error@+1 {{aten.foo has no lowering to StableHLO: there is none for this op (backend contract, rule BC4)}}
  %0 = torch.operator "torch.aten.foo"(%a) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}

// -----

func.func @no_polynomial(%a: !torch.vtensor<[4],f64>) -> !torch.vtensor<[4],f64> {
  // expected-error@+1 {{aten.erf has no lowering to StableHLO: StableHLO has no op for math.erf of floats}}
  %0 = torch.aten.erf %a : !torch.vtensor<[4],f64> -> !torch.vtensor<[4],f64>
  return %0 : !torch.vtensor<[4],f64>
}

// -----

// expected-error@+1 {{input 0 has the dtype 'ui8', which the conversion to StableHLO doesn't support}}
func.func @unsigned(%a: !torch.vtensor<[4],ui8>) -> !torch.vtensor<[4],ui8> {
  return %a : !torch.vtensor<[4],ui8>
}
