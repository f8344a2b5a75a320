// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops))' | FileCheck %s

// CHECK-LABEL: func.func @permute
// CHECK: %[[PAIRS:.*]] = torch.aten.view_as_real %arg0
// CHECK: %[[MOVED:.*]] = torch.aten.permute %[[PAIRS]], {{.*}} -> !torch.vtensor<[3,2,2],f32>
// CHECK: torch.aten.view_as_complex %[[MOVED]]
func.func @permute(%z: !torch.vtensor<[2,3],complex<f32>>) -> !torch.vtensor<[3,2],complex<f32>> {
  %int0 = torch.constant.int 0
  %int1 = torch.constant.int 1
  %0 = torch.aten.transpose.int %z, %int0, %int1 : !torch.vtensor<[2,3],complex<f32>>, !torch.int, !torch.int -> !torch.vtensor<[3,2],complex<f32>>
  return %0 : !torch.vtensor<[3,2],complex<f32>>
}

// Ops between two decomposed ops need no complex numbers.
// CHECK-LABEL: func.func @chain
// CHECK: torch.aten.view_as_real %arg0
// CHECK: torch.aten.view_as_real %arg1
// CHECK: %[[SUM:.*]] = torch.aten.add.Tensor
// CHECK-NOT: torch.aten.view_as
// CHECK: %[[NEG:.*]] = torch.aten.neg %[[SUM]]
// CHECK: torch.aten.view_as_complex %[[NEG]]
func.func @chain(%z: !torch.vtensor<[2,3],complex<f64>>, %w: !torch.vtensor<[2,3],complex<f64>>) -> !torch.vtensor<[2,3],complex<f64>> {
  %int1 = torch.constant.int 1
  %0 = torch.aten.add.Tensor %z, %w, %int1 : !torch.vtensor<[2,3],complex<f64>>, !torch.vtensor<[2,3],complex<f64>>, !torch.int -> !torch.vtensor<[2,3],complex<f64>>
  %1 = torch.aten.neg %0 : !torch.vtensor<[2,3],complex<f64>> -> !torch.vtensor<[2,3],complex<f64>>
  return %1 : !torch.vtensor<[2,3],complex<f64>>
}

// A slice of the last dim is a slice of all parts in one dim.
// CHECK-LABEL: func.func @last_slice
// CHECK-DAG: %[[TWO:.*]] = torch.constant.int 2
// CHECK-DAG: %[[SIX:.*]] = torch.constant.int 6
// CHECK: torch.aten.slice.Tensor {{.*}}, %[[TWO]], %[[SIX]], {{.*}} : !torch.vtensor<[2,8],f32>, {{.*}} -> !torch.vtensor<[2,4],f32>
func.func @last_slice(%z: !torch.vtensor<[2,4],complex<f32>>) -> !torch.vtensor<[2,2],complex<f32>> {
  %int1 = torch.constant.int 1
  %int3 = torch.constant.int 3
  %0 = torch.aten.slice.Tensor %z, %int1, %int1, %int3, %int1 : !torch.vtensor<[2,4],complex<f32>>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[2,2],complex<f32>>
  return %0 : !torch.vtensor<[2,2],complex<f32>>
}

// PyTorch's kernels compute products of complex numbers and mixed operands.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT: torch.constant.int
// CHECK-NEXT: torch.aten.mul.Tensor %arg0, %arg0
// CHECK-NEXT: torch.aten.add.Tensor
// CHECK-NEXT: return
func.func @kept(%z: !torch.vtensor<[2,3],complex<f32>>, %x: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,3],complex<f32>> {
  %int1 = torch.constant.int 1
  %0 = torch.aten.mul.Tensor %z, %z : !torch.vtensor<[2,3],complex<f32>>, !torch.vtensor<[2,3],complex<f32>> -> !torch.vtensor<[2,3],complex<f32>>
  %1 = torch.aten.add.Tensor %0, %x, %int1 : !torch.vtensor<[2,3],complex<f32>>, !torch.vtensor<[2,3],f32>, !torch.int -> !torch.vtensor<[2,3],complex<f32>>
  return %1 : !torch.vtensor<[2,3],complex<f32>>
}
