// RUN: ltc-opt %s --split-input-file --ltc-mlir-combine-products | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>

// The weight's gradient over two steps becomes one product of joined operands.
// CHECK-LABEL: @sum
// CHECK-SAME: %[[A0:.*]]: tensor<4x32xf32>, %[[A1:.*]]: tensor<8x32xf32>, %[[B0:.*]]: tensor<4x16xf32>, %[[B1:.*]]: tensor<8x16xf32>, %[[C:.*]]: tensor<32x16xf32>
// CHECK: %[[A:.*]] = ltc.join %[[A0]], %[[A1]] : (tensor<4x32xf32>, tensor<8x32xf32>) -> tensor<12x32xf32>
// CHECK: %[[B:.*]] = ltc.join %[[B0]], %[[B1]]
// CHECK: %[[P:.*]] = ltc.matmul %[[A]], %[[B]] {transpose_a}
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[C]]
// CHECK-NOT: linalg.generic
// CHECK: return %[[R]]
func.func @sum(%a0: tensor<4x32xf32>, %a1: tensor<8x32xf32>,
               %b0: tensor<4x16xf32>, %b1: tensor<8x16xf32>,
               %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %p0 = ltc.matmul %a0, %b0 {transpose_a}
      : (tensor<4x32xf32>, tensor<4x16xf32>) -> tensor<32x16xf32>
  %p1 = ltc.matmul %a1, %b1 {transpose_a}
      : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  %e = tensor.empty() : tensor<32x16xf32>
  %s0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p0, %c : tensor<32x16xf32>, tensor<32x16xf32>) outs(%e : tensor<32x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<32x16xf32>
  %s1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s0, %p1 : tensor<32x16xf32>, tensor<32x16xf32>) outs(%e : tensor<32x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<32x16xf32>
  return %s1 : tensor<32x16xf32>
}

// -----

// The products of two steps' inputs with one weight are combined without a copy
// if the inputs are adjacent slices of one tensor.
// CHECK-LABEL: @slices
// CHECK: %[[ALL:.*]] = tensor.collapse_shape %arg0
// CHECK: %[[RANGE:.*]] = tensor.extract_slice %[[ALL]][32] [64] [1]
// CHECK: %[[ROWS:.*]] = tensor.expand_shape %[[RANGE]]
// CHECK-NOT: ltc.join
// CHECK: %[[P:.*]] = ltc.matmul %[[ROWS]], %arg1
// CHECK-DAG: tensor.extract_slice %[[P]][0, 0] [4, 16]
// CHECK-DAG: tensor.extract_slice %[[P]][4, 0] [4, 16]
func.func @slices(%x: tensor<3x4x8xf32>, %w: tensor<8x16xf32>)
    -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %x1 = tensor.extract_slice %x[1, 0, 0] [1, 4, 8] [1, 1, 1]
      : tensor<3x4x8xf32> to tensor<4x8xf32>
  %x2 = tensor.extract_slice %x[2, 0, 0] [1, 4, 8] [1, 1, 1]
      : tensor<3x4x8xf32> to tensor<4x8xf32>
  %p1 = ltc.matmul %x1, %w
      : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %p2 = ltc.matmul %x2, %w
      : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return %p1, %p2 : tensor<4x16xf32>, tensor<4x16xf32>
}

// -----

// The second product reads the first one's result, so these two can't be
// combined. The first and the last product are independent and are combined, so
// the second moves down.
// CHECK-LABEL: @recurrent
// CHECK: %[[LATE:.*]] = ltc.join %arg2
// CHECK: %[[J:.*]] = ltc.join %arg0, %[[LATE]]
// CHECK: %[[P:.*]] = ltc.matmul %[[J]], %arg1
// CHECK: %[[H1:.*]] = tensor.extract_slice %[[P]][0, 0] [4, 16]
// CHECK: %[[OTHER:.*]] = tensor.extract_slice %[[P]][4, 0] [4, 16]
// CHECK: %[[H2:.*]] = ltc.matmul %[[H1]], %arg1
// CHECK: return %[[H2]], %[[OTHER]]
func.func @recurrent(%h0: tensor<4x16xf32>, %w: tensor<16x16xf32>, %z: tensor<4x16xf32>)
    -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %h1 = ltc.matmul %h0, %w
      : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %h2 = ltc.matmul %h1, %w
      : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %late = ltc.join %z : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %other = ltc.matmul %late, %w
      : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  return %h2, %other : tensor<4x16xf32>, tensor<4x16xf32>
}
