// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops))' | FileCheck %s

// CHECK-LABEL: func.func @mse
// CHECK: %[[D:.*]] = torch.aten.sub.Tensor
// CHECK: %[[SQUARES:.*]] = torch.aten.mul.Tensor %[[D]], %[[D]]
// CHECK: %[[SUM:.*]] = torch.aten.sum.dim_IntList %[[SQUARES]]
// CHECK: torch.aten.div.Scalar %[[SUM]]
func.func @mse(%x: !torch.vtensor<[4,5],f32>, %t: !torch.vtensor<[4,5],f32>) -> !torch.vtensor<[],f32> {
  %int1 = torch.constant.int 1
  %0 = torch.aten.mse_loss %x, %t, %int1 : !torch.vtensor<[4,5],f32>, !torch.vtensor<[4,5],f32>, !torch.int -> !torch.vtensor<[],f32>
  return %0 : !torch.vtensor<[],f32>
}

// Ignored targets aren't used as indices: they are set to 0 first.
// CHECK-LABEL: func.func @nll
// CHECK: %[[SAFE:.*]] = torch.aten.masked_fill.Scalar {{.*}} -> !torch.vtensor<[4,1],si64>
// CHECK: torch.aten.gather %{{.*}}, %{{.*}}, %[[SAFE]]
func.func @nll(%x: !torch.vtensor<[4,5],f32>, %t: !torch.vtensor<[4],si64>) -> !torch.vtensor<[],f32> {
  %none = torch.constant.none
  %int1 = torch.constant.int 1
  %ignored = torch.constant.int -100
  %0:2 = torch.aten.nll_loss_forward %x, %t, %none, %int1, %ignored : !torch.vtensor<[4,5],f32>, !torch.vtensor<[4],si64>, !torch.none, !torch.int, !torch.int -> !torch.vtensor<[],f32>, !torch.vtensor<[],f32>
  return %0#0 : !torch.vtensor<[],f32>
}

// The gradient needs no scatter: each class index is compared with the target.
// CHECK-LABEL: func.func @nll_backward
// CHECK: %[[CLASSES:.*]] = torch.aten.view {{.*}} -> !torch.vtensor<[1,5],si64>
// CHECK: %[[IS:.*]] = torch.aten.eq.Tensor %[[CLASSES]], {{.*}} -> !torch.vtensor<[4,5],i1>
// CHECK: torch.aten.where.self %[[IS]], {{.*}} -> !torch.vtensor<[4,5],f32>
func.func @nll_backward(%grad: !torch.vtensor<[],f32>, %x: !torch.vtensor<[4,5],f32>, %t: !torch.vtensor<[4],si64>) -> !torch.vtensor<[4,5],f32> {
  %none = torch.constant.none
  %int2 = torch.constant.int 2
  %ignored = torch.constant.int -100
  %0 = torch.aten.nll_loss_backward %grad, %x, %t, %none, %int2, %ignored, %grad : !torch.vtensor<[],f32>, !torch.vtensor<[4,5],f32>, !torch.vtensor<[4],si64>, !torch.none, !torch.int, !torch.int, !torch.vtensor<[],f32> -> !torch.vtensor<[4,5],f32>
  return %0 : !torch.vtensor<[4,5],f32>
}
