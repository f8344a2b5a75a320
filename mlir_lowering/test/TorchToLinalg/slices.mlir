// RUN: ltc-opt %s --ltc-mlir-convert-torch-to-linalg --canonicalize --split-input-file | FileCheck %s

// A start that is a dynamic scalar is counted from the end if it is negative,
// and clamped so that the result's rows are inside the tensor.

// CHECK-LABEL: func.func @slice
// CHECK-SAME: %[[X:.+]]: tensor<9x8xf32>, %[[START:[^:]+]]: i64,
// CHECK-DAG: %[[LAST:.+]] = arith.constant 5 : index
// CHECK: %[[INDEX:.+]] = arith.index_cast %[[START]] : i64 to index
// CHECK: arith.select
// CHECK: %[[LOW:.+]] = arith.maxsi
// CHECK: %[[AT:.+]] = arith.minsi %[[LOW]], %[[LAST]]
// CHECK: tensor.extract_slice %[[X]][%[[AT]], 0] [4, 8] [1, 1]
func.func @slice(%x: !torch.vtensor<[9,8],f32>, %start: !torch.int, %end: !torch.int) -> !torch.vtensor<[4,8],f32> {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %s = torch.aten.slice.Tensor %x, %0, %start, %end, %1 : !torch.vtensor<[9,8],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[4,8],f32>
  return %s : !torch.vtensor<[4,8],f32>
}

// -----

// An end that is a dynamic scalar isn't read: the result's type determines the
// length.

// CHECK-LABEL: func.func @constant_start
// CHECK: tensor.extract_slice %{{.+}}[2, 0] [4, 8] [1, 1]
func.func @constant_start(%x: !torch.vtensor<[9,8],f32>, %end: !torch.int) -> !torch.vtensor<[4,8],f32> {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %s = torch.aten.slice.Tensor %x, %0, %2, %end, %1 : !torch.vtensor<[9,8],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[4,8],f32>
  return %s : !torch.vtensor<[4,8],f32>
}

// -----

// CHECK-LABEL: func.func @write
// CHECK: tensor.insert_slice %{{.+}} into %{{.+}}[0, %{{.+}}] [9, 1] [1, 1]
func.func @write(%x: !torch.vtensor<[9,8],f32>, %v: !torch.vtensor<[9],f32>, %i: !torch.int) -> !torch.vtensor<[9,8],f32> {
  %1 = torch.constant.int 1
  %s = torch.aten.select_scatter %x, %v, %1, %i : !torch.vtensor<[9,8],f32>, !torch.vtensor<[9],f32>, !torch.int, !torch.int -> !torch.vtensor<[9,8],f32>
  return %s : !torch.vtensor<[9,8],f32>
}

// -----

// The shifts in a list may also be dynamic scalars.

// CHECK-LABEL: func.func @roll
// CHECK: linalg.generic
// CHECK: arith.remsi
// CHECK: tensor.extract
func.func @roll(%x: !torch.vtensor<[9,8],f32>, %i: !torch.int) -> !torch.vtensor<[9,8],f32> {
  %1 = torch.constant.int 1
  %shifts = torch.prim.ListConstruct %i : (!torch.int) -> !torch.list<int>
  %dims = torch.prim.ListConstruct %1 : (!torch.int) -> !torch.list<int>
  %s = torch.aten.roll %x, %shifts, %dims : !torch.vtensor<[9,8],f32>, !torch.list<int>, !torch.list<int> -> !torch.vtensor<[9,8],f32>
  return %s : !torch.vtensor<[9,8],f32>
}
