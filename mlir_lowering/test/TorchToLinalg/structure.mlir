// RUN: ltc-opt %s --ltc-mlir-convert-torch-to-linalg --canonicalize --split-input-file | FileCheck %s

// A matrix product becomes a linalg.matmul that accumulates into zeros, and a
// transposed operand a linalg.transpose. Later stages recognize this form.

// CHECK-LABEL: func.func @matmul
// CHECK-SAME: %[[A:.+]]: tensor<2x3xf32>, %[[B:.+]]: tensor<4x3xf32>
// CHECK: %[[T:.+]] = linalg.transpose ins(%[[B]] :
// CHECK: %[[ZERO:.+]] = linalg.fill
// CHECK: linalg.matmul ins(%[[A]], %[[T]] : {{.*}}) outs(%[[ZERO]] :
func.func @matmul(%a: !torch.vtensor<[2,3],f32>, %b: !torch.vtensor<[4,3],f32>) -> !torch.vtensor<[2,4],f32> {
  %0 = torch.aten.t %b : !torch.vtensor<[4,3],f32> -> !torch.vtensor<[3,4],f32>
  %1 = torch.aten.mm %a, %0 : !torch.vtensor<[2,3],f32>, !torch.vtensor<[3,4],f32> -> !torch.vtensor<[2,4],f32>
  return %1 : !torch.vtensor<[2,4],f32>
}

// -----

// keepdim becomes a reshape after the reduction.

// CHECK-LABEL: func.func @reduction
// CHECK: %[[SUM:.+]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
// CHECK: tensor.expand_shape %[[SUM]] {{\[\[}}0, 1]] {{.*}} : tensor<2xf32> into tensor<2x1xf32>
func.func @reduction(%a: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,1],f32> {
  %true = torch.constant.bool true
  %none = torch.constant.none
  %m1 = torch.constant.int -1
  %dims = torch.prim.ListConstruct %m1 : (!torch.int) -> !torch.list<int>
  %0 = torch.aten.sum.dim_IntList %a, %dims, %true, %none : !torch.vtensor<[2,3],f32>, !torch.list<int>, !torch.bool, !torch.none -> !torch.vtensor<[2,1],f32>
  return %0 : !torch.vtensor<[2,1],f32>
}

// -----

// A concatenation becomes a chain of insertions.

// CHECK-LABEL: func.func @concatenation
// CHECK-SAME: %[[A:.+]]: tensor<2x3xf32>, %[[B:.+]]: tensor<1x3xf32>
// CHECK: %[[EMPTY:.+]] = tensor.empty() : tensor<3x3xf32>
// CHECK: %[[FIRST:.+]] = tensor.insert_slice %[[A]] into %[[EMPTY]][0, 0] [2, 3] [1, 1]
// CHECK: tensor.insert_slice %[[B]] into %[[FIRST]][2, 0] [1, 3] [1, 1]
func.func @concatenation(%a: !torch.vtensor<[2,3],f32>, %b: !torch.vtensor<[1,3],f32>) -> !torch.vtensor<[3,3],f32> {
  %0 = torch.constant.int 0
  %list = torch.prim.ListConstruct %a, %b : (!torch.vtensor<[2,3],f32>, !torch.vtensor<[1,3],f32>) -> !torch.list<vtensor>
  %1 = torch.aten.cat %list, %0 : !torch.list<vtensor>, !torch.int -> !torch.vtensor<[3,3],f32>
  return %1 : !torch.vtensor<[3,3],f32>
}

// -----

// A gather becomes a parallel linalg.generic, which clamps the indices.

// CHECK-LABEL: func.func @embedding
// CHECK-SAME: %[[W:.+]]: tensor<10x4xf32>, %[[I:.+]]: tensor<3xi64>
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: tensor.extract %[[W]]
func.func @embedding(%w: !torch.vtensor<[10,4],f32>, %i: !torch.vtensor<[3],si64>) -> !torch.vtensor<[3,4],f32> {
  %false = torch.constant.bool false
  %m1 = torch.constant.int -1
  %0 = torch.aten.embedding %w, %i, %m1, %false, %false : !torch.vtensor<[10,4],f32>, !torch.vtensor<[3],si64>, !torch.int, !torch.bool, !torch.bool -> !torch.vtensor<[3,4],f32>
  return %0 : !torch.vtensor<[3,4],f32>
}

// -----

// A scatter becomes a serial loop that carries the tensor.

// CHECK-LABEL: func.func @scatter_add
// CHECK-SAME: %[[A:.+]]: tensor<5xf32>
// CHECK: scf.for {{.*}} iter_args(%[[T:.+]] = %[[A]]) -> (tensor<5xf32>)
// CHECK: tensor.extract %[[T]]
// CHECK: tensor.insert {{.*}} into %[[T]]
func.func @scatter_add(%a: !torch.vtensor<[5],f32>, %i: !torch.vtensor<[3],si64>, %s: !torch.vtensor<[3],f32>) -> !torch.vtensor<[5],f32> {
  %0 = torch.constant.int 0
  %1 = torch.aten.scatter_add %a, %0, %i, %s : !torch.vtensor<[5],f32>, !torch.int, !torch.vtensor<[3],si64>, !torch.vtensor<[3],f32> -> !torch.vtensor<[5],f32>
  return %1 : !torch.vtensor<[5],f32>
}

// -----

// A pooling is parallel over the output, without a padded copy of the input.

// CHECK-LABEL: func.func @max_pool
// CHECK-SAME: %[[X:.+]]: tensor<1x2x6x6xf32>
// CHECK-NOT: tensor.pad
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel"]{{.*}} outs({{.*}} : tensor<1x2x3x3xf32>, tensor<1x2x3x3xi64>)
// CHECK: scf.for
// CHECK: tensor.extract %[[X]]
func.func @max_pool(%x: !torch.vtensor<[1,2,6,6],f32>) -> (!torch.vtensor<[1,2,3,3],f32>, !torch.vtensor<[1,2,3,3],si64>) {
  %false = torch.constant.bool false
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %kernel = torch.prim.ListConstruct %3, %3 : (!torch.int, !torch.int) -> !torch.list<int>
  %stride = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !torch.list<int>
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !torch.list<int>
  %r:2 = torch.aten.max_pool2d_with_indices %x, %kernel, %stride, %ones, %ones, %false : !torch.vtensor<[1,2,6,6],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool -> !torch.vtensor<[1,2,3,3],f32>, !torch.vtensor<[1,2,3,3],si64>
  return %r#0, %r#1 : !torch.vtensor<[1,2,3,3],f32>, !torch.vtensor<[1,2,3,3],si64>
}
