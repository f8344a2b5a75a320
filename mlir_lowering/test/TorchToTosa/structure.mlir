// RUN: ltc-opt %s --ltc-mlir-convert-torch-to-tosa --canonicalize --split-input-file | FileCheck %s

// Operands of elementwise ops are reshaped to the same rank; TOSA itself
// broadcasts dimensions of size 1. A dynamic scalar that is a float becomes an
// f32 tensor.

// CHECK-LABEL: func.func @elementwise
// CHECK-SAME: %[[A:.+]]: tensor<2x3xf32>, %[[B:.+]]: tensor<3xf32>, %[[LR:.+]]: tensor<f32>
// CHECK: %[[ROW:.+]] = tosa.reshape %[[B]], {{.*}} -> tensor<1x3xf32>
// CHECK: %[[FACTOR:.+]] = tosa.reshape %[[LR]], {{.*}} -> tensor<1x1xf32>
// CHECK: %[[SCALED:.+]] = tosa.mul %{{.+}}, %{{.+}}, %{{.+}} : (tensor<1x1xf32>, tensor<1x3xf32>, tensor<1xi8>) -> tensor<1x3xf32>
// CHECK: tosa.add %[[A]], %[[SCALED]] : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
func.func @elementwise(%a: !torch.vtensor<[2,3],f32>, %b: !torch.vtensor<[3],f32>, %lr: !torch.float) -> !torch.vtensor<[2,3],f32> {
  %0 = torch.aten.add.Tensor %a, %b, %lr : !torch.vtensor<[2,3],f32>, !torch.vtensor<[3],f32>, !torch.float -> !torch.vtensor<[2,3],f32>
  return %0 : !torch.vtensor<[2,3],f32>
}

// -----

// tosa.cast rounds to the nearest integer, so floats are truncated first, as in
// torch.

// CHECK-LABEL: func.func @to_integer
// CHECK-DAG: %[[DOWN:.+]] = tosa.floor
// CHECK-DAG: %[[UP:.+]] = tosa.ceil
// CHECK: %[[CUT:.+]] = tosa.select %{{.+}}, %[[UP]], %[[DOWN]]
// CHECK: tosa.cast %[[CUT]] : (tensor<4xf32>) -> tensor<4xi64>
func.func @to_integer(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],si64> {
  %int = torch.constant.int 4
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.aten._to_copy %a, %int, %none, %none, %none, %false, %none : !torch.vtensor<[4],f32>, !torch.int, !torch.none, !torch.none, !torch.none, !torch.bool, !torch.none -> !torch.vtensor<[4],si64>
  return %0 : !torch.vtensor<[4],si64>
}

// -----

// Adjacent dimensions are reduced as one; TOSA keeps reduced dimensions.

// CHECK-LABEL: func.func @sum
// CHECK: %[[FLAT:.+]] = tosa.reshape {{.*}} -> tensor<2x12xf32>
// CHECK: %[[SUM:.+]] = tosa.reduce_sum %[[FLAT]] {axis = 1 : i32} : (tensor<2x12xf32>) -> tensor<2x1xf32>
// CHECK: tosa.reshape %[[SUM]], {{.*}} -> tensor<2xf32>
func.func @sum(%a: !torch.vtensor<[2,3,4],f32>) -> !torch.vtensor<[2],f32> {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %none = torch.constant.none
  %false = torch.constant.bool false
  %dims = torch.prim.ListConstruct %1, %2 : (!torch.int, !torch.int) -> !torch.list<int>
  %0 = torch.aten.sum.dim_IntList %a, %dims, %false, %none : !torch.vtensor<[2,3,4],f32>, !torch.list<int>, !torch.bool, !torch.none -> !torch.vtensor<[2],f32>
  return %0 : !torch.vtensor<[2],f32>
}

// -----

// A matrix product becomes a batched product with a batch of 1.

// CHECK-LABEL: func.func @mm
// CHECK: tosa.matmul {{.*}} : (tensor<1x2x3xf32>, tensor<1x3x4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x2x4xf32>
func.func @mm(%a: !torch.vtensor<[2,3],f32>, %b: !torch.vtensor<[3,4],f32>) -> !torch.vtensor<[2,4],f32> {
  %0 = torch.aten.mm %a, %b : !torch.vtensor<[2,3],f32>, !torch.vtensor<[3,4],f32> -> !torch.vtensor<[2,4],f32>
  return %0 : !torch.vtensor<[2,4],f32>
}

// -----

// TOSA's convolution has channels last, and no padding that windows don't
// reach: of 1 + 8 + 1 elements, windows of 3 with stride 2 read 9.

// CHECK-LABEL: func.func @convolution
// CHECK: tosa.transpose {{.*}} {perms = array<i32: 0, 2, 3, 1>}
// CHECK: tosa.conv2d {{.*}} dilation = array<i64: 1, 1>, pad = array<i64: 1, 0, 1, 0>, stride = array<i64: 2, 2>{{.*}} -> tensor<2x4x4x6xf32>
// CHECK: tosa.transpose {{.*}} {perms = array<i32: 0, 3, 1, 2>}
func.func @convolution(%x: !torch.vtensor<[2,4,8,8],f32>, %w: !torch.vtensor<[6,4,3,3],f32>) -> !torch.vtensor<[2,6,4,4],f32> {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %stride = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !torch.list<int>
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !torch.list<int>
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !torch.list<int>
  %y = torch.aten.convolution %x, %w, %none, %stride, %ones, %ones, %false, %zeros, %1 : !torch.vtensor<[2,4,8,8],f32>, !torch.vtensor<[6,4,3,3],f32>, !torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int -> !torch.vtensor<[2,6,4,4],f32>
  return %y : !torch.vtensor<[2,6,4,4],f32>
}

// -----

// A slice with step 2 is the first column of the elements reshaped to pairs.

// CHECK-LABEL: func.func @strided_slice
// CHECK: tosa.reshape {{.*}} -> tensor<3x2xf32>
// CHECK: tosa.slice {{.*}} -> tensor<3x1xf32>
// CHECK: tosa.reshape {{.*}} -> tensor<3xf32>
func.func @strided_slice(%a: !torch.vtensor<[6],f32>) -> !torch.vtensor<[3],f32> {
  %0 = torch.constant.int 0
  %2 = torch.constant.int 2
  %6 = torch.constant.int 6
  %s = torch.aten.slice.Tensor %a, %0, %0, %6, %2 : !torch.vtensor<[6],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[3],f32>
  return %s : !torch.vtensor<[3],f32>
}

// -----

// Indices are clamped to the rows of the weight.

// CHECK-LABEL: func.func @embedding
// CHECK: tosa.cast {{.*}} -> tensor<5xi32>
// CHECK: tosa.maximum
// CHECK: tosa.minimum
// CHECK: tosa.gather {{.*}} : (tensor<1x7x3xf32>, tensor<1x5xi32>) -> tensor<1x5x3xf32>
func.func @embedding(%w: !torch.vtensor<[7,3],f32>, %i: !torch.vtensor<[5],si64>) -> !torch.vtensor<[5,3],f32> {
  %minus = torch.constant.int -1
  %false = torch.constant.bool false
  %0 = torch.aten.embedding %w, %i, %minus, %false, %false : !torch.vtensor<[7,3],f32>, !torch.vtensor<[5],si64>, !torch.int, !torch.bool, !torch.bool -> !torch.vtensor<[5,3],f32>
  return %0 : !torch.vtensor<[5,3],f32>
}

// -----

// A max pooling compares strided slices, one for each position in the window.

// CHECK-LABEL: func.func @max_pool
// CHECK-COUNT-4: tosa.greater
// CHECK-NOT: tosa.greater
func.func @max_pool(%a: !torch.vtensor<[1,1,4,4],f32>) -> !torch.vtensor<[1,1,2,2],f32> {
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %twos = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !torch.list<int>
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !torch.list<int>
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !torch.list<int>
  %r, %i = torch.aten.max_pool2d_with_indices %a, %twos, %twos, %zeros, %ones, %false : !torch.vtensor<[1,1,4,4],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool -> !torch.vtensor<[1,1,2,2],f32>, !torch.vtensor<[1,1,2,2],si64>
  return %r : !torch.vtensor<[1,1,2,2],f32>
}
