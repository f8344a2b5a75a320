// RUN: ltc-opt %s --ltc-mlir-convert-torch-to-stablehlo --canonicalize --split-input-file | FileCheck %s

// Broadcasts become ops; a float that is a dynamic scalar becomes a tensor of
// f64.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[A:.+]]: tensor<2x3xf32>, %[[B:.+]]: tensor<3xf32>, %[[LR:.+]]: tensor<f64>
// CHECK: "stablehlo.convert"(%{{.+}}) : (tensor<1x1xf64>) -> tensor<1x1xf32>
// CHECK: "stablehlo.broadcast_in_dim"({{.*}}) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xf32>) -> tensor<1x3xf32>
// CHECK: "stablehlo.multiply"
// CHECK: "stablehlo.add"(%[[A]], {{.*}}) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @elementwise(%a: !torch.vtensor<[2,3],f32>, %b: !torch.vtensor<[3],f32>, %lr: !torch.float) -> !torch.vtensor<[2,3],f32> {
  %0 = torch.aten.add.Tensor %a, %b, %lr : !torch.vtensor<[2,3],f32>, !torch.vtensor<[3],f32>, !torch.float -> !torch.vtensor<[2,3],f32>
  return %0 : !torch.vtensor<[2,3],f32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK: %[[ZERO:.+]] = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}>
// CHECK: "stablehlo.reduce"(%{{.+}}, %[[ZERO]]) <{dimensions = array<i64: 0, 2>}> ({
// CHECK: "stablehlo.add"
// CHECK: "stablehlo.return"
// CHECK: (tensor<2x3x4xf32>, tensor<f32>) -> tensor<3xf32>
func.func @sum(%a: !torch.vtensor<[2,3,4],f32>) -> !torch.vtensor<[3],f32> {
  %0 = torch.constant.int 0
  %2 = torch.constant.int 2
  %none = torch.constant.none
  %false = torch.constant.bool false
  %dims = torch.prim.ListConstruct %0, %2 : (!torch.int, !torch.int) -> !torch.list<int>
  %r = torch.aten.sum.dim_IntList %a, %dims, %false, %none : !torch.vtensor<[2,3,4],f32>, !torch.list<int>, !torch.bool, !torch.none -> !torch.vtensor<[3],f32>
  return %r : !torch.vtensor<[3],f32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK: "stablehlo.dot_general"({{.*}}) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}>
func.func @bmm(%a: !torch.vtensor<[5,2,3],f32>, %b: !torch.vtensor<[5,3,4],f32>) -> !torch.vtensor<[5,2,4],f32> {
  %0 = torch.aten.bmm %a, %b : !torch.vtensor<[5,2,3],f32>, !torch.vtensor<[5,3,4],f32> -> !torch.vtensor<[5,2,4],f32>
  return %0 : !torch.vtensor<[5,2,4],f32>
}

// -----

// The gradient of a strided convolution's input is a convolution of the dilated
// gradient of the output with the reversed weight.

// CHECK-LABEL: func.func @main
// CHECK: "stablehlo.reverse"({{.*}}) <{dimensions = array<i64: 2, 3>}>
// CHECK: "stablehlo.convolution"
// CHECK-SAME: dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>
// CHECK-SAME: lhs_dilation = array<i64: 2, 2>
// CHECK-SAME: padding = dense<{{\[\[}}1, 2], [1, 2]]> : tensor<2x2xi64>
// CHECK-SAME: -> tensor<2x4x8x8xf32>
func.func @convolution_backward(%g: !torch.vtensor<[2,6,4,4],f32>, %x: !torch.vtensor<[2,4,8,8],f32>, %w: !torch.vtensor<[6,4,3,3],f32>) -> !torch.vtensor<[2,4,8,8],f32> {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %true = torch.constant.bool true
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %stride = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !torch.list<int>
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !torch.list<int>
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !torch.list<int>
  %mask = torch.prim.ListConstruct %true, %false, %false : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  %a, %b, %c = torch.aten.convolution_backward %g, %x, %w, %none, %stride, %ones, %ones, %false, %zeros, %1, %mask : !torch.vtensor<[2,6,4,4],f32>, !torch.vtensor<[2,4,8,8],f32>, !torch.vtensor<[6,4,3,3],f32>, !torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int, !torch.list<bool> -> !torch.vtensor<[2,4,8,8],f32>, !torch.vtensor<[6,4,3,3],f32>, !torch.vtensor<[6],f32>
  return %a : !torch.vtensor<[2,4,8,8],f32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK: "stablehlo.gather"({{.*}}) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 3>}> : (tensor<7x3xf32>, tensor<1x5xi32>) -> tensor<1x5x3xf32>
func.func @embedding(%w: !torch.vtensor<[7,3],f32>, %i: !torch.vtensor<[5],si64>) -> !torch.vtensor<[5,3],f32> {
  %minus = torch.constant.int -1
  %false = torch.constant.bool false
  %0 = torch.aten.embedding %w, %i, %minus, %false, %false : !torch.vtensor<[7,3],f32>, !torch.vtensor<[5],si64>, !torch.int, !torch.bool, !torch.bool -> !torch.vtensor<[5,3],f32>
  return %0 : !torch.vtensor<[5,3],f32>
}

// -----

// StableHLO has no erf, so it becomes a polynomial.

// CHECK-LABEL: func.func @main
// CHECK-NOT: erf
// CHECK: "stablehlo.select"
func.func @erf(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %0 = torch.aten.erf %a : !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}

// -----

// A sort counts the elements that come before each element, and then gathers
// the elements at the resulting positions.

// CHECK-LABEL: func.func @main
// CHECK: "stablehlo.compare"({{.*}}) {{.*}} -> tensor<1x3x3xi1>
// CHECK: "stablehlo.reduce"
// CHECK: "stablehlo.reduce"
// CHECK: "stablehlo.gather"
func.func @sort(%a: !torch.vtensor<[3],f32>) -> (!torch.vtensor<[3],f32>, !torch.vtensor<[3],si64>) {
  %dim = torch.constant.int 0
  %false = torch.constant.bool false
  %v, %i = torch.aten.sort %a, %dim, %false : !torch.vtensor<[3],f32>, !torch.int, !torch.bool -> !torch.vtensor<[3],f32>, !torch.vtensor<[3],si64>
  return %v, %i : !torch.vtensor<[3],f32>, !torch.vtensor<[3],si64>
}

// -----

// A scatter searches, for each position, for the last write to it.

// CHECK-LABEL: func.func @main
// CHECK: "stablehlo.compare"({{.*}}) {{.*}} -> tensor<1x4x2xi1>
// CHECK: "stablehlo.reduce"
// CHECK: "stablehlo.gather"
// CHECK: "stablehlo.select"
func.func @scatter(%a: !torch.vtensor<[4],f32>, %i: !torch.vtensor<[2],si64>, %s: !torch.vtensor<[2],f32>) -> !torch.vtensor<[4],f32> {
  %dim = torch.constant.int 0
  %r = torch.aten.scatter.src %a, %dim, %i, %s : !torch.vtensor<[4],f32>, !torch.int, !torch.vtensor<[2],si64>, !torch.vtensor<[2],f32> -> !torch.vtensor<[4],f32>
  return %r : !torch.vtensor<[4],f32>
}
