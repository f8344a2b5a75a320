// RUN: ltc-opt %s -ltc-mlir-normalize-ops -split-input-file | FileCheck %s

// A strided slice reads a view of its source: the range from the slice's first
// to its last element.
// CHECK-DAG: #[[IN:.+]] = affine_map<(d0, d1) -> (d0 * 8 + d1 * 2)>
// CHECK-LABEL: func.func @slice
// CHECK: %[[FLAT:.+]] = tensor.collapse_shape %{{.*}} : tensor<4x8xf32> into tensor<32xf32>
// CHECK: %[[RANGE:.+]] = tensor.extract_slice %[[FLAT]][1] [29] [1]
// CHECK: linalg.generic {{.*}}#[[IN]]{{.*}} ins(%[[RANGE]] : tensor<29xf32>)
func.func @slice(%x: tensor<4x8xf32>) -> tensor<4x3xf32> {
  %s = tensor.extract_slice %x[0, 1] [4, 3] [1, 2] : tensor<4x8xf32> to tensor<4x3xf32>
  return %s : tensor<4x3xf32>
}

// -----

// CHECK-LABEL: func.func @empty_slice
// CHECK: tensor.extract_slice %{{.+}}[0] [0] [1]
func.func @empty_slice(%x: tensor<4x8xf32>) -> tensor<4x0xf32> {
  %s = tensor.extract_slice %x[0, 2] [4, 0] [1, 1] : tensor<4x8xf32> to tensor<4x0xf32>
  return %s : tensor<4x0xf32>
}

// -----

// CHECK-LABEL: func.func @contiguous
// CHECK-NEXT: tensor.extract_slice
func.func @contiguous(%x: tensor<4x8xf32>) -> tensor<2x8xf32> {
  %s = tensor.extract_slice %x[1, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
  return %s : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: func.func @concat
// CHECK: tensor.insert_slice %{{.+}} into %{{.+}}[0, 0] [2, 3]
// CHECK: tensor.insert_slice %{{.+}} into %{{.+}}[0, 3] [2, 5]
func.func @concat(%a: tensor<2x3xf32>, %b: tensor<2x5xf32>) -> tensor<2x8xf32> {
  %c = tensor.concat dim(1) %a, %b : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  return %c : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: func.func @transpose
// CHECK: linalg.generic
func.func @transpose(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %e = tensor.empty() : tensor<3x2xf32>
  %t = linalg.transpose ins(%a : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
  return %t : tensor<3x2xf32>
}

// -----

// A slice of leading columns reads x as a view of rank 1, too. If it read x
// with its own shape, the inner loop would have 8 iterations instead of 3.
// CHECK-DAG: #[[IN:.+]] = affine_map<(d0, d1) -> (d0 * 8 + d1)>
// CHECK-LABEL: func.func @leading_columns
// CHECK: linalg.generic {{.*}}#[[IN]]
func.func @leading_columns(%x: tensor<4x8xf32>) -> tensor<4x3xf32> {
  %s = tensor.extract_slice %x[0, 0] [4, 3] [1, 1] : tensor<4x8xf32> to tensor<4x3xf32>
  return %s : tensor<4x3xf32>
}

// -----

// CHECK-LABEL: func.func @reduce_one_element
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} ins(%{{.*}} : tensor<4x1xf32>)
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: arith.addf %[[ZERO]], %[[X]]
func.func @reduce_one_element(%x: tensor<4x1xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x1xf32>) outs(%init : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %sum = arith.addf %acc, %a : f32
      linalg.yield %sum : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A slice whose start is a dynamic scalar becomes a generic that adds the start
// to its loop index and reads the source there.

// CHECK-LABEL: func.func @slice_at
// CHECK-SAME: %[[X:.+]]: tensor<9x8xf32>, %[[START:[^:]+]]: index
// CHECK: linalg.generic
// CHECK-DAG: %[[ROW:.+]] = linalg.index 0
// CHECK-DAG: %[[COLUMN:.+]] = linalg.index 1
// CHECK-DAG: %[[AT:.+]] = arith.addi %[[START]], %[[ROW]]
// CHECK: tensor.extract %[[X]][%[[AT]], %{{.+}}]
// CHECK-NOT: extract_slice
func.func @slice_at(%x: tensor<9x8xf32>, %start: index) -> tensor<4x3xf32> {
  %s = tensor.extract_slice %x[%start, 1] [4, 3] [1, 2] : tensor<9x8xf32> to tensor<4x3xf32>
  return %s : tensor<4x3xf32>
}

// -----

// A dimension that the slice drops is read at the slice's offset.

// CHECK-LABEL: func.func @row_at
// CHECK-SAME: %[[X:.+]]: tensor<9x8xf32>, %[[START:[^:]+]]: index
// CHECK: linalg.generic
// CHECK: tensor.extract %[[X]][%[[START]], %{{.+}}]
func.func @row_at(%x: tensor<9x8xf32>, %start: index) -> tensor<8xf32> {
  %s = tensor.extract_slice %x[%start, 0] [1, 8] [1, 1] : tensor<9x8xf32> to tensor<8xf32>
  return %s : tensor<8xf32>
}
