// RUN: ltc-opt %s --ltc-mlir-bind-buffers --eliminate-empty-tensors --empty-tensor-to-alloc-tensor --one-shot-bufferize --canonicalize | FileCheck %s

#rows = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A result is computed in its destination buffer.
// CHECK-LABEL: func.func @insert
// CHECK-NOT: alloc
// CHECK-COUNT-2: memref.subview %arg2
// CHECK: return
func.func @insert(%a: tensor<4x6xf32>, %b: tensor<4x2xf32>) -> tensor<4x8xf32> {
  %empty = tensor.empty() : tensor<4x8xf32>
  %0 = tensor.insert_slice %a into %empty[0, 0] [4, 6] [1, 1] : tensor<4x6xf32> into tensor<4x8xf32>
  %1 = tensor.insert_slice %b into %0[0, 6] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// Two reductions start with the same fill. The second one doesn't read its
// initial value from the first one's destination, which is overwritten by then.
// CHECK-LABEL: func.func @shared_fill
// CHECK-NOT: memref.copy %arg2, %arg3
// CHECK: memref.copy %alloc{{.*}}, %arg3
// CHECK-NOT: memref.copy %arg2, %arg3
func.func @shared_fill(%a: tensor<8x6xf32>, %b: tensor<8x6xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<8x6xf32>) outs(%fill : tensor<8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%b : tensor<8x6xf32>) outs(%fill : tensor<8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
