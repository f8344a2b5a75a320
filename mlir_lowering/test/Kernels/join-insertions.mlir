// RUN: ltc-opt %s --ltc-mlir-join-insertions --split-input-file | FileCheck %s

// The parts of the join are the inserted rows, except one that is overwritten,
// and the remaining parts of the destination.
// CHECK-LABEL: func.func @rows
// CHECK-DAG: %[[BEFORE:.*]] = tensor.extract_slice %{{.*}}[0] [3] [1] : tensor<36xf32> to tensor<3xf32>
// CHECK-DAG: %[[AFTER:.*]] = tensor.extract_slice %{{.*}}[30] [6] [1] : tensor<36xf32> to tensor<6xf32>
// CHECK: ltc.join %[[BEFORE]], %arg1, %arg2, %arg1, %arg1, %arg1, %arg1, %arg1, %arg1, %arg1, %[[AFTER]] : {{.*}} -> tensor<36xf32>
// CHECK-NOT: tensor.insert_slice
func.func @rows(%x: tensor<12x3xf32>, %a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<12x3xf32> {
  %0 = tensor.insert_slice %a into %x[1, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<12x3xf32>
  %1 = tensor.insert_slice %a into %0[2, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<12x3xf32>
  %2 = tensor.insert_slice %a into %1[3, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<12x3xf32>
  %3 = tensor.insert_slice %a into %2[4, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<12x3xf32>
  %4 = tensor.insert_slice %a into %3[5, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<12x3xf32>
  %5 = tensor.insert_slice %a into %4[6, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<12x3xf32>
  %6 = tensor.insert_slice %a into %5[7, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<12x3xf32>
  %7 = tensor.insert_slice %a into %6[8, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<12x3xf32>
  %8 = tensor.insert_slice %a into %7[9, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<12x3xf32>
  %9 = tensor.insert_slice %b into %8[2, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<12x3xf32>
  return %9 : tensor<12x3xf32>
}

// -----

// A stack along an inner dimension is a transposed join.
// CHECK-LABEL: func.func @columns
// CHECK: ltc.join %{{.*}} : {{.*}} -> tensor<27xf32>
// CHECK: linalg.generic
// CHECK-SAME: tensor<9x3x1xf32>
// CHECK-NOT: tensor.insert_slice
func.func @columns(%a: tensor<3xf32>) -> tensor<3x9xf32> {
  %x = tensor.empty() : tensor<3x9xf32>
  %0 = tensor.insert_slice %a into %x[0, 0] [3, 1] [1, 1] : tensor<3xf32> into tensor<3x9xf32>
  %1 = tensor.insert_slice %a into %0[0, 1] [3, 1] [1, 1] : tensor<3xf32> into tensor<3x9xf32>
  %2 = tensor.insert_slice %a into %1[0, 2] [3, 1] [1, 1] : tensor<3xf32> into tensor<3x9xf32>
  %3 = tensor.insert_slice %a into %2[0, 3] [3, 1] [1, 1] : tensor<3xf32> into tensor<3x9xf32>
  %4 = tensor.insert_slice %a into %3[0, 4] [3, 1] [1, 1] : tensor<3xf32> into tensor<3x9xf32>
  %5 = tensor.insert_slice %a into %4[0, 5] [3, 1] [1, 1] : tensor<3xf32> into tensor<3x9xf32>
  %6 = tensor.insert_slice %a into %5[0, 6] [3, 1] [1, 1] : tensor<3xf32> into tensor<3x9xf32>
  %7 = tensor.insert_slice %a into %6[0, 7] [3, 1] [1, 1] : tensor<3xf32> into tensor<3x9xf32>
  %8 = tensor.insert_slice %a into %7[0, 8] [3, 1] [1, 1] : tensor<3xf32> into tensor<3x9xf32>
  return %8 : tensor<3x9xf32>
}

// -----

// A slice that doesn't overlap an insertion reads the insertion's destination;
// a single insertion isn't joined.
// CHECK-LABEL: func.func @beside
// CHECK: tensor.insert_slice
// CHECK: tensor.extract_slice %arg0[2] [1] [1]
func.func @beside(%x: tensor<4xf32>, %a: tensor<2xf32>) -> (tensor<4xf32>, tensor<1xf32>) {
  %0 = tensor.insert_slice %a into %x[0] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %1 = tensor.extract_slice %0[2] [1] [1] : tensor<4xf32> to tensor<1xf32>
  return %0, %1 : tensor<4xf32>, tensor<1xf32>
}

// -----

// In a program for all sizes, the pass records the order in which it assumes
// the parts to be; the order is checked when the executable is bound.
module attributes {torch_ltc.general} {
// CHECK-LABEL: func.func @general
// CHECK-SAME: torch_ltc.orders = array<i64: 1, 2>
func.func @general(%x: tensor<4xf32>, %a: tensor<2xf32>) -> (tensor<4xf32>, tensor<1xf32>) {
  %0 = tensor.insert_slice %a into %x[0] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %1 = tensor.extract_slice %0[2] [1] [1] : tensor<4xf32> to tensor<1xf32>
  return %0, %1 : tensor<4xf32>, tensor<1xf32>
}
}

// -----

// A large operand of a host call becomes a join, because its parts can be
// written in place. An operand stays a chain of insertions if it is small, or
// if the insertions don't cover it completely.
// CHECK-LABEL: func.func @bucket
// CHECK: %[[BUCKET:.*]] = ltc.join %{{.*}}, %{{.*}} : {{.*}} -> tensor<9000xf32>
// CHECK: ltc.host_call "aten::relu"(%[[BUCKET]])
// CHECK: %[[PART:.*]] = tensor.insert_slice
// CHECK: ltc.host_call "aten::relu"(%[[PART]])
// CHECK: %[[SMALL:.*]] = tensor.insert_slice
// CHECK: ltc.host_call "aten::relu"(%[[SMALL]])
func.func @bucket(%x: tensor<9000xf32>, %y: tensor<2xf32>, %a: tensor<8000xf32>, %b: tensor<1000xf32>, %c: tensor<2xf32>) -> (tensor<9000xf32>, tensor<9000xf32>, tensor<2xf32>) {
  %0 = tensor.insert_slice %a into %x[0] [8000] [1] : tensor<8000xf32> into tensor<9000xf32>
  %1 = tensor.insert_slice %b into %0[8000] [1000] [1] : tensor<1000xf32> into tensor<9000xf32>
  %sorted = ltc.host_call "aten::relu"(%1) {arguments = [f32], result_dtypes = [f32]} : (tensor<9000xf32>) -> tensor<9000xf32>
  %2 = tensor.insert_slice %b into %x[8000] [1000] [1] : tensor<1000xf32> into tensor<9000xf32>
  %part = ltc.host_call "aten::relu"(%2) {arguments = [f32], result_dtypes = [f32]} : (tensor<9000xf32>) -> tensor<9000xf32>
  %3 = tensor.insert_slice %c into %y[0] [2] [1] : tensor<2xf32> into tensor<2xf32>
  %small = ltc.host_call "aten::relu"(%3) {arguments = [f32], result_dtypes = [f32]} : (tensor<2xf32>) -> tensor<2xf32>
  return %sorted, %part, %small : tensor<9000xf32>, tensor<9000xf32>, tensor<2xf32>
}
