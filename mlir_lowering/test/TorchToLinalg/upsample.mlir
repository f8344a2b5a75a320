// RUN: ltc-opt %s --ltc-mlir-convert-torch-to-linalg --canonicalize | FileCheck %s

// Elements of the gradient are independent of each other: no loop carries a
// tensor. The 3 source rows become the 5 rows 0 0 1 1 2.
// CHECK-LABEL: func.func @nearest_backward
// CHECK-DAG: arith.constant dense<[0, 2, 4, 5]> : tensor<4xi64>
// CHECK-DAG: arith.constant dense<[0, 2, 4]> : tensor<3xi64>
// CHECK-NOT: tensor.insert
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel"]
// CHECK: scf.for {{.*}} -> (f32)
// CHECK: scf.for {{.*}} -> (f32)
// CHECK-NOT: tensor.insert
// CHECK: return
func.func @nearest_backward(%g: !torch.vtensor<[1,2,5,4],f32>) -> !torch.vtensor<[1,2,3,2],f32> {
  %none = torch.constant.none
  %int1 = torch.constant.int 1
  %int2 = torch.constant.int 2
  %int3 = torch.constant.int 3
  %int4 = torch.constant.int 4
  %int5 = torch.constant.int 5
  %out = torch.prim.ListConstruct %int5, %int4 : (!torch.int, !torch.int) -> !torch.list<int>
  %in = torch.prim.ListConstruct %int1, %int2, %int3, %int2 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
  %0 = torch.aten.upsample_nearest2d_backward %g, %out, %in, %none, %none : !torch.vtensor<[1,2,5,4],f32>, !torch.list<int>, !torch.list<int>, !torch.none, !torch.none -> !torch.vtensor<[1,2,3,2],f32>
  return %0 : !torch.vtensor<[1,2,3,2],f32>
}
