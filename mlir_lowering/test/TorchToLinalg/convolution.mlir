// RUN: ltc-opt %s --ltc-mlir-convert-torch-to-linalg --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:.+]]: tensor<2x4x8x8xf32>, %[[W:.+]]: tensor<6x2x3x3xf32>, %[[B:.+]]: tensor<6xf32>
// CHECK: ltc.convolution %[[X]], %[[W]] bias %[[B]]
// CHECK-SAME: dilation = array<i64: 1, 1>, groups = 2 : i64, padding = array<i64: 1, 1>, stride = array<i64: 2, 2>
// CHECK-SAME: -> tensor<2x6x4x4xf32>
func.func @forward(%x: !torch.vtensor<[2,4,8,8],f32>, %w: !torch.vtensor<[6,2,3,3],f32>, %b: !torch.vtensor<[6],f32>) -> !torch.vtensor<[2,6,4,4],f32> {
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %stride = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !torch.list<int>
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !torch.list<int>
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !torch.list<int>
  %y = torch.aten.convolution %x, %w, %b, %stride, %ones, %ones, %false, %zeros, %2 : !torch.vtensor<[2,4,8,8],f32>, !torch.vtensor<[6,2,3,3],f32>, !torch.vtensor<[6],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int -> !torch.vtensor<[2,6,4,4],f32>
  return %y : !torch.vtensor<[2,6,4,4],f32>
}

// -----

// A transposed convolution becomes the library call that computes the gradient
// of a convolution's input.

// CHECK-LABEL: func.func @transposed
// CHECK-SAME: %[[X:.+]]: tensor<1x6x4xf32>, %[[W:.+]]: tensor<6x2x3xf32>, %[[B:.+]]: tensor<2xf32>
// CHECK: %[[Y:.+]] = ltc.convolution_backward_input %[[X]], %[[W]]
// CHECK-SAME: -> tensor<1x2x9xf32>
// CHECK: linalg.generic {{.*}} ins(%[[Y]],
// CHECK: arith.addf
func.func @transposed(%x: !torch.vtensor<[1,6,4],f32>, %w: !torch.vtensor<[6,2,3],f32>, %b: !torch.vtensor<[2],f32>) -> !torch.vtensor<[1,2,9],f32> {
  %true = torch.constant.bool true
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %stride = torch.prim.ListConstruct %2 : (!torch.int) -> !torch.list<int>
  %ones = torch.prim.ListConstruct %1 : (!torch.int) -> !torch.list<int>
  %zeros = torch.prim.ListConstruct %0 : (!torch.int) -> !torch.list<int>
  %y = torch.aten.convolution %x, %w, %b, %stride, %zeros, %ones, %true, %zeros, %1 : !torch.vtensor<[1,6,4],f32>, !torch.vtensor<[6,2,3],f32>, !torch.vtensor<[2],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int -> !torch.vtensor<[1,2,9],f32>
  return %y : !torch.vtensor<[1,2,9],f32>
}

// -----

// Only the results that the mask selects are computed.

// CHECK-LABEL: func.func @backward
// CHECK-SAME: %[[G:.+]]: tensor<2x6x4x4xf32>, %[[X:.+]]: tensor<2x4x8x8xf32>, %[[W:.+]]: tensor<6x2x3x3xf32>
// CHECK-NOT: convolution_backward_input
// CHECK: %[[GW:.+]] = ltc.convolution_backward_weight %[[G]], %[[X]]
// CHECK: %[[GB:.+]] = linalg.generic {{.*}}iterator_types = ["reduction", "parallel", "reduction", "reduction"]{{.*}} ins(%[[G]] :
// CHECK: return %[[GW]], %[[GB]]
func.func @backward(%g: !torch.vtensor<[2,6,4,4],f32>, %x: !torch.vtensor<[2,4,8,8],f32>, %w: !torch.vtensor<[6,2,3,3],f32>) -> (!torch.vtensor<[6,2,3,3],f32>, !torch.vtensor<[6],f32>) {
  %false = torch.constant.bool false
  %true = torch.constant.bool true
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %6 = torch.constant.int 6
  %bias = torch.prim.ListConstruct %6 : (!torch.int) -> !torch.list<int>
  %stride = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !torch.list<int>
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !torch.list<int>
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !torch.list<int>
  %mask = torch.prim.ListConstruct %false, %true, %true : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  %r:3 = torch.aten.convolution_backward %g, %x, %w, %bias, %stride, %ones, %ones, %false, %zeros, %2, %mask : !torch.vtensor<[2,6,4,4],f32>, !torch.vtensor<[2,4,8,8],f32>, !torch.vtensor<[6,2,3,3],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int, !torch.list<bool> -> !torch.vtensor<[2,4,8,8],f32>, !torch.vtensor<[6,2,3,3],f32>, !torch.vtensor<[6],f32>
  return %r#1, %r#2 : !torch.vtensor<[6,2,3,3],f32>, !torch.vtensor<[6],f32>
}
