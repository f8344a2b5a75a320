// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops))' -split-input-file -verify-diagnostics

func.func @unknown_dim(%x: !torch.vtensor<[2,3],f32>, %dim: !torch.int) -> !torch.vtensor<[2,3],f32> {
  %false = torch.constant.bool false
  // expected-error-re@+1 {{'torch.aten._softmax' ({{.*}}) cannot be decomposed: argument 'dim' isn't a constant}}
  %0 = torch.aten._softmax %x, %dim, %false : !torch.vtensor<[2,3],f32>, !torch.int, !torch.bool -> !torch.vtensor<[2,3],f32>
  return %0 : !torch.vtensor<[2,3],f32>
}

// -----

func.func @unknown_sizes(%x: !torch.vtensor<[2,?],f32>) -> !torch.vtensor<[2,?],f32> {
  %dim = torch.constant.int 1
  %false = torch.constant.bool false
  // expected-error-re@+1 {{'torch.aten._softmax' ({{.*}}) cannot be decomposed: argument 'self' is a tensor of unknown sizes}}
  %0 = torch.aten._softmax %x, %dim, %false : !torch.vtensor<[2,?],f32>, !torch.int, !torch.bool -> !torch.vtensor<[2,?],f32>
  return %0 : !torch.vtensor<[2,?],f32>
}
