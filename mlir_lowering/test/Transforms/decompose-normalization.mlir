// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops))' | FileCheck %s

// A dynamic scalar stays an operand of a `.Scalar` op.
// CHECK-LABEL: func.func @layer_norm
// CHECK-SAME: %[[X:[a-z0-9]+]]: !torch.vtensor<[2,8],f32>, %[[W:[a-z0-9]+]]: !torch.vtensor<[8],f32>, %[[EPS:[a-z0-9]+]]: !torch.float
// CHECK: %[[CENTERED:.*]] = torch.aten.sub.Tensor %[[X]]
// CHECK: %[[SHIFTED:.*]] = torch.aten.add.Scalar %{{.*}}, %[[EPS]]
// CHECK: %[[RSTD:.*]] = torch.aten.rsqrt %[[SHIFTED]] : !torch.vtensor<[2,1],f32>
// CHECK: %[[XHAT:.*]] = torch.aten.mul.Tensor %[[CENTERED]], %[[RSTD]]
// CHECK: %[[Y:.*]] = torch.aten.mul.Tensor %[[XHAT]], %[[W]]
// CHECK: return %[[Y]], %[[RSTD]]
func.func @layer_norm(%x: !torch.vtensor<[2,8],f32>, %w: !torch.vtensor<[8],f32>, %eps: !torch.float) -> (!torch.vtensor<[2,8],f32>, !torch.vtensor<[2,1],f32>) {
  %int8 = torch.constant.int 8
  %shape = torch.prim.ListConstruct %int8 : (!torch.int) -> !torch.list<int>
  %none = torch.constant.none
  %0:3 = torch.aten.native_layer_norm %x, %shape, %w, %none, %eps : !torch.vtensor<[2,8],f32>, !torch.list<int>, !torch.vtensor<[8],f32>, !torch.none, !torch.float -> !torch.vtensor<[2,8],f32>, !torch.vtensor<[2,1],f32>, !torch.vtensor<[2,1],f32>
  return %0#0, %0#2 : !torch.vtensor<[2,8],f32>, !torch.vtensor<[2,1],f32>
}

// Only used results are computed: here, only the gradient of the bias.
// CHECK-LABEL: func.func @layer_norm_bias_gradient
// CHECK-NOT: torch.aten.mul
// CHECK: torch.aten.sum.dim_IntList %arg0, {{.*}} -> !torch.vtensor<[8],f32>
// CHECK-NOT: torch.aten.sum
func.func @layer_norm_bias_gradient(%grad: !torch.vtensor<[2,8],f32>, %x: !torch.vtensor<[2,8],f32>, %mean: !torch.vtensor<[2,1],f32>, %w: !torch.vtensor<[8],f32>) -> !torch.vtensor<[8],f32> {
  %int8 = torch.constant.int 8
  %shape = torch.prim.ListConstruct %int8 : (!torch.int) -> !torch.list<int>
  %true = torch.constant.bool true
  %mask = torch.prim.ListConstruct %true, %true, %true : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  %0:3 = torch.aten.native_layer_norm_backward %grad, %x, %shape, %mean, %mean, %w, %w, %mask : !torch.vtensor<[2,8],f32>, !torch.vtensor<[2,8],f32>, !torch.list<int>, !torch.vtensor<[2,1],f32>, !torch.vtensor<[2,1],f32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>, !torch.list<bool> -> !torch.vtensor<[2,8],f32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>
  return %0#2 : !torch.vtensor<[8],f32>
}

// momentum is a dynamic scalar, so 1 - momentum is computed as a rank-0 tensor
// of f64.
// CHECK-LABEL: func.func @batch_norm
// CHECK-SAME: %[[MOMENTUM:[a-z0-9]+]]: !torch.float
// CHECK-DAG: torch.aten.mul.Scalar %{{.*}}, %[[MOMENTUM]] : !torch.vtensor<[3],f32>, !torch.float
// CHECK-DAG: %[[NUMBER:.*]] = torch.prim.NumToTensor.Scalar %[[MOMENTUM]] : !torch.float -> !torch.vtensor<[],f64>
// CHECK-DAG: %[[REST:.*]] = torch.aten.rsub.Scalar %[[NUMBER]], {{.*}} -> !torch.vtensor<[],f64>
// CHECK-DAG: torch.aten.mul.Tensor %{{.*}}, %[[REST]] : !torch.vtensor<[3],f32>, !torch.vtensor<[],f64> -> !torch.vtensor<[3],f32>
func.func @batch_norm(%x: !torch.vtensor<[4,3,5],f32>, %mean: !torch.vtensor<[3],f32>, %var: !torch.vtensor<[3],f32>, %momentum: !torch.float) -> !torch.vtensor<[3],f32> {
  %none = torch.constant.none
  %true = torch.constant.bool true
  %eps = torch.constant.float 1.0e-05
  %0:5 = torch.aten._native_batch_norm_legit_functional %x, %none, %none, %mean, %var, %true, %momentum, %eps : !torch.vtensor<[4,3,5],f32>, !torch.none, !torch.none, !torch.vtensor<[3],f32>, !torch.vtensor<[3],f32>, !torch.bool, !torch.float, !torch.float -> !torch.vtensor<[4,3,5],f32>, !torch.vtensor<[3],f32>, !torch.vtensor<[3],f32>, !torch.vtensor<[3],f32>, !torch.vtensor<[3],f32>
  return %0#3 : !torch.vtensor<[3],f32>
}

// In evaluation, the saved statistics are empty, as on CPU.
// CHECK-LABEL: func.func @batch_norm_evaluation
// CHECK-NOT: torch.aten.sum
// CHECK: torch.aten.full {{.*}} -> !torch.vtensor<[0],f32>
func.func @batch_norm_evaluation(%x: !torch.vtensor<[4,3,5],f32>, %mean: !torch.vtensor<[3],f32>, %var: !torch.vtensor<[3],f32>) -> (!torch.vtensor<[4,3,5],f32>, !torch.vtensor<[0],f32>) {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %float = torch.constant.float 1.0e-05
  %0:3 = torch.aten.native_batch_norm %x, %none, %none, %mean, %var, %false, %float, %float : !torch.vtensor<[4,3,5],f32>, !torch.none, !torch.none, !torch.vtensor<[3],f32>, !torch.vtensor<[3],f32>, !torch.bool, !torch.float, !torch.float -> !torch.vtensor<[4,3,5],f32>, !torch.vtensor<[0],f32>, !torch.vtensor<[0],f32>
  return %0#0, %0#1 : !torch.vtensor<[4,3,5],f32>, !torch.vtensor<[0],f32>
}
