// RUN: ltc-opt %s --ltc-mlir-convert-torch-to-linalg --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[Q:.+]]: tensor<1x4x300x8xf32>, %[[K:.+]]: tensor<1x4x400x8xf32>, %[[V:.+]]: tensor<1x4x400x6xf32>
// CHECK: ltc.attention %[[Q]], %[[K]], %[[V]] {causal}
// CHECK-SAME: -> (tensor<1x4x300x6xf32>, tensor<1x4x300xf32>)
func.func @forward(%q: !torch.vtensor<[1,4,300,8],f32>, %k: !torch.vtensor<[1,4,400,8],f32>, %v: !torch.vtensor<[1,4,400,6],f32>) -> (!torch.vtensor<[1,4,300,6],f32>, !torch.vtensor<[1,4,300],f32>) {
  %none = torch.constant.none
  %true = torch.constant.bool true
  %0:2 = torch.torch_ltc.attention %q, %k, %v, %none, %true : !torch.vtensor<[1,4,300,8],f32>, !torch.vtensor<[1,4,400,8],f32>, !torch.vtensor<[1,4,400,6],f32>, !torch.none, !torch.bool -> !torch.vtensor<[1,4,300,6],f32>, !torch.vtensor<[1,4,300],f32>
  return %0#0, %0#1 : !torch.vtensor<[1,4,300,6],f32>, !torch.vtensor<[1,4,300],f32>
}

// -----

// CHECK-LABEL: func.func @backward
// CHECK-SAME: %[[G:.+]]: tensor<1x4x300x8xf32>, %[[Q:.+]]: tensor<1x4x300x8xf32>, %[[K:.+]]: tensor<1x4x300x8xf32>, %[[S:.+]]: tensor<1x4x300xf32>, %[[M:.+]]: tensor<1x1x1x300xf32>
// CHECK: ltc.attention_backward %[[G]], %[[Q]], %[[K]], %[[K]], %[[Q]], %[[S]] mask %[[M]] :
// CHECK-SAME: -> (tensor<1x4x300x8xf32>, tensor<1x4x300x8xf32>, tensor<1x4x300x8xf32>)
func.func @backward(%g: !torch.vtensor<[1,4,300,8],f32>, %q: !torch.vtensor<[1,4,300,8],f32>, %k: !torch.vtensor<[1,4,300,8],f32>, %s: !torch.vtensor<[1,4,300],f32>, %m: !torch.vtensor<[1,1,1,300],f32>) -> (!torch.vtensor<[1,4,300,8],f32>, !torch.vtensor<[1,4,300,8],f32>, !torch.vtensor<[1,4,300,8],f32>) {
  %false = torch.constant.bool false
  %0:3 = torch.torch_ltc.attention_backward %g, %q, %k, %k, %q, %s, %m, %false : !torch.vtensor<[1,4,300,8],f32>, !torch.vtensor<[1,4,300,8],f32>, !torch.vtensor<[1,4,300,8],f32>, !torch.vtensor<[1,4,300,8],f32>, !torch.vtensor<[1,4,300,8],f32>, !torch.vtensor<[1,4,300],f32>, !torch.vtensor<[1,1,1,300],f32>, !torch.bool -> !torch.vtensor<[1,4,300,8],f32>, !torch.vtensor<[1,4,300,8],f32>, !torch.vtensor<[1,4,300,8],f32>
  return %0#0, %0#1, %0#2 : !torch.vtensor<[1,4,300,8],f32>, !torch.vtensor<[1,4,300,8],f32>, !torch.vtensor<[1,4,300,8],f32>
}
