// RUN: ltc-opt %s --ltc-mlir-convert-torch-to-tosa --split-input-file --verify-diagnostics

// The pass reports every op that can't be lowered, not only the first.

func.func @unknown(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  // expected-error@+1 {{aten.foo has no lowering to TOSA: there is none for this op (backend contract, rule BC4)}}
  %0 = torch.operator "torch.aten.foo"(%a) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>
  // expected-error@+1 {{aten.round has no lowering to TOSA: TOSA has no op for math.roundeven of floats}}
  %1 = torch.aten.round %0 : !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
  return %1 : !torch.vtensor<[4],f32>
}

// -----

// expected-error@+1 {{input 0 has the dtype 'f64', which the conversion to TOSA doesn't support; convert it to another dtype}}
func.func @float64(%a: !torch.vtensor<[4],f64>) -> !torch.vtensor<[4],f64> {
  // expected-error@+1 {{aten.neg's result has the dtype 'f64', which the conversion to TOSA doesn't support}}
  %0 = torch.aten.neg %a : !torch.vtensor<[4],f64> -> !torch.vtensor<[4],f64>
  return %0 : !torch.vtensor<[4],f64>
}

// -----

// expected-error@+1 {{input 0 has no elements, and TOSA has no such tensors}}
func.func @empty(%a: !torch.vtensor<[0],f32>) -> !torch.vtensor<[0],f32> {
  return %a : !torch.vtensor<[0],f32>
}

// -----

func.func @not_constant(%a: !torch.vtensor<[4],f32>, %dim: !torch.int) -> !torch.vtensor<[1,4],f32> {
  // expected-error@+1 {{aten.unsqueeze has no lowering to TOSA: argument 'dim' isn't a constant of the program (backend contract, rule BC6)}}
  %0 = torch.aten.unsqueeze %a, %dim : !torch.vtensor<[4],f32>, !torch.int -> !torch.vtensor<[1,4],f32>
  return %0 : !torch.vtensor<[1,4],f32>
}
