// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops))' | FileCheck %s

// The gradient of a transposed convolution's input is the plain convolution of
// the output's gradient. The gradient of its weight is that of the plain
// convolution with the input and the output's gradient exchanged.
// CHECK-LABEL: func.func @transposed
// CHECK-SAME: %[[G:.*]]: !torch.vtensor<[1,2,9],f32>, %[[X:.*]]: !torch.vtensor<[1,6,4],f32>, %[[W:.*]]: !torch.vtensor<[6,2,3],f32>
// CHECK-DAG: %[[FALSE:.*]] = torch.constant.bool false
// CHECK: %[[GX:.*]] = torch.aten.convolution %[[G]], %[[W]], %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[FALSE]]
// CHECK: %{{.*}}, %[[GW:.*]], %{{.*}} = torch.aten.convolution_backward %[[X]], %[[G]], %[[W]], %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[FALSE]]
// CHECK: %[[GB:.*]] = torch.aten.sum.dim_IntList %[[G]]
// CHECK: return %[[GX]], %[[GW]], %[[GB]]
func.func @transposed(%g: !torch.vtensor<[1,2,9],f32>, %x: !torch.vtensor<[1,6,4],f32>, %w: !torch.vtensor<[6,2,3],f32>) -> (!torch.vtensor<[1,6,4],f32>, !torch.vtensor<[6,2,3],f32>, !torch.vtensor<[2],f32>) {
  %int0 = torch.constant.int 0
  %int1 = torch.constant.int 1
  %int2 = torch.constant.int 2
  %true = torch.constant.bool true
  %stride = torch.prim.ListConstruct %int2 : (!torch.int) -> !torch.list<int>
  %zeros = torch.prim.ListConstruct %int0 : (!torch.int) -> !torch.list<int>
  %ones = torch.prim.ListConstruct %int1 : (!torch.int) -> !torch.list<int>
  %bias = torch.prim.ListConstruct %int2 : (!torch.int) -> !torch.list<int>
  %mask = torch.prim.ListConstruct %true, %true, %true : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  %r:3 = torch.aten.convolution_backward %g, %x, %w, %bias, %stride, %zeros, %ones, %true, %zeros, %int1, %mask : !torch.vtensor<[1,2,9],f32>, !torch.vtensor<[1,6,4],f32>, !torch.vtensor<[6,2,3],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int, !torch.list<bool> -> !torch.vtensor<[1,6,4],f32>, !torch.vtensor<[6,2,3],f32>, !torch.vtensor<[2],f32>
  return %r#0, %r#1, %r#2 : !torch.vtensor<[1,6,4],f32>, !torch.vtensor<[6,2,3],f32>, !torch.vtensor<[2],f32>
}

// CHECK-LABEL: func.func @plain
// CHECK-SAME: %[[G:.*]]: !torch.vtensor<[1,6,4],f32>, %[[X:.*]]: !torch.vtensor<[1,2,9],f32>, %[[W:.*]]: !torch.vtensor<[6,2,3],f32>
// CHECK: torch.aten.convolution_backward %[[G]], %[[X]], %[[W]]
func.func @plain(%g: !torch.vtensor<[1,6,4],f32>, %x: !torch.vtensor<[1,2,9],f32>, %w: !torch.vtensor<[6,2,3],f32>) -> !torch.vtensor<[1,2,9],f32> {
  %int0 = torch.constant.int 0
  %int1 = torch.constant.int 1
  %int2 = torch.constant.int 2
  %true = torch.constant.bool true
  %false = torch.constant.bool false
  %none = torch.constant.none
  %stride = torch.prim.ListConstruct %int2 : (!torch.int) -> !torch.list<int>
  %zeros = torch.prim.ListConstruct %int0 : (!torch.int) -> !torch.list<int>
  %ones = torch.prim.ListConstruct %int1 : (!torch.int) -> !torch.list<int>
  %mask = torch.prim.ListConstruct %true, %false, %false : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  %r:3 = torch.aten.convolution_backward %g, %x, %w, %none, %stride, %zeros, %ones, %false, %zeros, %int1, %mask : !torch.vtensor<[1,6,4],f32>, !torch.vtensor<[1,2,9],f32>, !torch.vtensor<[6,2,3],f32>, !torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int, !torch.list<bool> -> !torch.vtensor<[1,2,9],f32>, !torch.vtensor<[6,2,3],f32>, !torch.vtensor<[6],f32>
  return %r#0 : !torch.vtensor<[1,2,9],f32>
}
