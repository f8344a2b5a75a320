// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops))' | FileCheck %s

// A norm of order 2 is the square root of a sum of squares, without aten.pow.
// CHECK-LABEL: func.func @norm_of_order_2
// CHECK-SAME: %[[X:.*]]: !torch.vtensor<[4,5],f32>
// CHECK: %[[SQUARES:.*]] = torch.aten.mul.Tensor %[[X]], %[[X]]
// CHECK: %[[SUM:.*]] = torch.aten.sum.dim_IntList %[[SQUARES]]
// CHECK: torch.aten.sqrt %[[SUM]]
// CHECK-NOT: torch.aten.pow
func.func @norm_of_order_2(%x: !torch.vtensor<[4,5],f32>) -> !torch.vtensor<[],f32> {
  %order = torch.constant.int 2
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.aten.linalg_vector_norm %x, %order, %none, %false, %none : !torch.vtensor<[4,5],f32>, !torch.int, !torch.none, !torch.bool, !torch.none -> !torch.vtensor<[],f32>
  return %0 : !torch.vtensor<[],f32>
}

// CHECK-LABEL: func.func @mean_bf16
// CHECK: %[[X:.*]] = torch.aten._to_copy {{.*}} -> !torch.vtensor<[4,5],f32>
// CHECK: %[[SUM:.*]] = torch.aten.sum.dim_IntList %[[X]], {{.*}} -> !torch.vtensor<[4],f32>
// CHECK: torch.aten.div.Scalar %[[SUM]], %{{.*}} : !torch.vtensor<[4],f32>, !torch.float
// CHECK: %[[Y:.*]] = torch.aten._to_copy {{.*}} -> !torch.vtensor<[4],bf16>
// CHECK: return %[[Y]]
func.func @mean_bf16(%x: !torch.vtensor<[4,5],bf16>) -> !torch.vtensor<[4],bf16> {
  %dim = torch.constant.int -1
  %dims = torch.prim.ListConstruct %dim : (!torch.int) -> !torch.list<int>
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.aten.mean.dim %x, %dims, %false, %none : !torch.vtensor<[4,5],bf16>, !torch.list<int>, !torch.bool, !torch.none -> !torch.vtensor<[4],bf16>
  return %0 : !torch.vtensor<[4],bf16>
}

// A variance takes two passes, so that no digits are lost if the mean is large.
// CHECK-LABEL: func.func @var
// CHECK: %[[MEAN:.*]] = torch.aten.div.Scalar
// CHECK: %[[CENTERED:.*]] = torch.aten.sub.Tensor %{{.*}}, %[[MEAN]]
// CHECK: torch.aten.mul.Tensor %[[CENTERED]], %[[CENTERED]]
// CHECK: torch.aten.sum.dim_IntList
func.func @var(%x: !torch.vtensor<[4,5],f32>) -> !torch.vtensor<[],f32> {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.aten.var.correction %x, %none, %none, %false : !torch.vtensor<[4,5],f32>, !torch.none, !torch.none, !torch.bool -> !torch.vtensor<[],f32>
  return %0 : !torch.vtensor<[],f32>
}
