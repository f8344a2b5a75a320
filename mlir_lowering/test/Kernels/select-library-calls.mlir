// RUN: ltc-opt %s -ltc-mlir-select-library-calls -canonicalize -split-input-file | FileCheck %s

// A transposed operand becomes a flag, and the zero fill is removed.
// CHECK-LABEL: func.func @transposed
// CHECK-SAME: (%[[X:.+]]: tensor<4x8xf32>, %[[W:.+]]: tensor<16x8xf32>)
// CHECK-NEXT: %[[C:.+]] = ltc.matmul %[[X]], %[[W]] {transpose_b}
// CHECK-NEXT: return %[[C]]
func.func @transposed(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16xf32>) -> tensor<4x16xf32>
  %emptyT = tensor.empty() : tensor<8x16xf32>
  %wt = linalg.transpose ins(%w : tensor<16x8xf32>) outs(%emptyT : tensor<8x16xf32>) permutation = [1, 0]
  %c = linalg.matmul ins(%x, %wt : tensor<4x8xf32>, tensor<8x16xf32>) outs(%init : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %c : tensor<4x16xf32>
}

// -----

// A matrix that a generic broadcasts along the batch and transposes becomes an
// operand with a flag.
#in = affine_map<(b, i, j) -> (j, i)>
#out = affine_map<(b, i, j) -> (b, i, j)>
// CHECK-LABEL: func.func @broadcast
// CHECK-SAME: (%[[X:.+]]: tensor<2x4x8xf32>, %[[W:.+]]: tensor<16x8xf32>)
// CHECK-NEXT: ltc.matmul %[[X]], %[[W]] {transpose_b} : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
func.func @broadcast(%x: tensor<2x4x8xf32>, %w: tensor<16x8xf32>) -> tensor<2x4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  %emptyT = tensor.empty() : tensor<2x8x16xf32>
  %wt = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w : tensor<16x8xf32>) outs(%emptyT : tensor<2x8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x8x16xf32>
  %c = linalg.batch_matmul ins(%x, %wt : tensor<2x4x8xf32>, tensor<2x8x16xf32>) outs(%init : tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  return %c : tensor<2x4x16xf32>
}

// -----

// An initial value other than 0 is added after the product.
// CHECK-LABEL: func.func @accumulate
// CHECK-SAME: %[[INIT:[^,]+]]: tensor<4x16xi64>)
// CHECK: %[[C:.+]] = ltc.matmul
// CHECK: linalg.generic {{.*}} ins(%[[C]], %[[INIT]]
// CHECK: arith.addi
func.func @accumulate(%x: tensor<4x8xi64>, %w: tensor<8x16xi64>, %init: tensor<4x16xi64>) -> tensor<4x16xi64> {
  %c = linalg.matmul ins(%x, %w : tensor<4x8xi64>, tensor<8x16xi64>) outs(%init : tensor<4x16xi64>) -> tensor<4x16xi64>
  return %c : tensor<4x16xi64>
}
