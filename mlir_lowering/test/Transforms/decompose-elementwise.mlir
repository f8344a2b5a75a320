// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops))' | FileCheck %s

// CHECK-LABEL: func.func @glu
// CHECK: %[[A:.*]] = torch.aten.slice.Tensor
// CHECK: %[[B:.*]] = torch.aten.slice.Tensor
// CHECK: %[[S:.*]] = torch.aten.sigmoid %[[B]]
// CHECK: torch.aten.mul.Tensor %[[A]], %[[S]]
func.func @glu(%x: !torch.vtensor<[3,4],f32>) -> !torch.vtensor<[3,2],f32> {
  %dim = torch.constant.int -1
  %0 = torch.aten.glu %x, %dim : !torch.vtensor<[3,4],f32>, !torch.int -> !torch.vtensor<[3,2],f32>
  return %0 : !torch.vtensor<[3,2],f32>
}

// Most elementwise ops with one result aren't decomposed: scalar builders lower
// them.
// CHECK-LABEL: func.func @gelu
// CHECK: torch.aten.gelu
func.func @gelu(%x: !torch.vtensor<[3,4],f32>) -> !torch.vtensor<[3,4],f32> {
  %tanh = torch.constant.str "tanh"
  %0 = torch.aten.gelu %x, %tanh : !torch.vtensor<[3,4],f32>, !torch.str -> !torch.vtensor<[3,4],f32>
  return %0 : !torch.vtensor<[3,4],f32>
}
