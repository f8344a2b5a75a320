// RUN: ltc-opt %s --ltc-mlir-convert-torch-to-linalg --split-input-file --verify-diagnostics

// The pass reports every op that can't be lowered, not only the first.

func.func @unknown(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  // expected-error@+1 {{aten.foo has no lowering to linalg: there is none for this op (backend contract, rule BC4)}}
  %0 = torch.operator "torch.aten.foo"(%a) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>
  // expected-error@+1 {{aten.bar has no lowering}}
  %1 = torch.operator "torch.aten.bar"(%0) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>
  return %1 : !torch.vtensor<[4],f32>
}

// -----

func.func @not_constant(%a: !torch.vtensor<[4],f32>, %dim: !torch.int) -> !torch.vtensor<[1,4],f32> {
  // expected-error@+1 {{aten.unsqueeze has no lowering to linalg: argument 'dim' (!torch.int) isn't a constant of the program (backend contract, rule BC6)}}
  %0 = torch.aten.unsqueeze %a, %dim : !torch.vtensor<[4],f32>, !torch.int -> !torch.vtensor<[1,4],f32>
  return %0 : !torch.vtensor<[1,4],f32>
}

// -----

func.func @mask(%a: !torch.vtensor<[4],f32>, %mask: !torch.vtensor<[4],i1>) -> !torch.vtensor<[2],f32> {
  %0 = torch.prim.ListConstruct %mask : (!torch.vtensor<[4],i1>) -> !torch.list<vtensor>
  // expected-error@+1 {{aten.index.Tensor has no lowering to linalg: an index is a mask}}
  %1 = torch.aten.index.Tensor %a, %0 : !torch.vtensor<[4],f32>, !torch.list<vtensor> -> !torch.vtensor<[2],f32>
  return %1 : !torch.vtensor<[2],f32>
}
