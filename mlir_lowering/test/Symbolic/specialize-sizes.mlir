// RUN: ltc-opt %s | ltc-opt | FileCheck %s --check-prefix=TEXT
// RUN: ltc-opt %s --ltc-mlir-verify-backend-contract=allow-dynamic-sizes=true -o /dev/null
// RUN: ltc-opt %s --ltc-mlir-specialize-sizes=sizes=batch=4,s1=6 | FileCheck %s
// RUN: ltc-opt %s --ltc-mlir-specialize-sizes=sizes=batch=4,s1=6 --ltc-torch-to-contract --ltc-torch-to-linalg --ltc-linalg-to-kernels -o /dev/null
// RUN: not ltc-opt %s --ltc-mlir-specialize-sizes=sizes=batch=1,s1=6 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not ltc-opt %s --ltc-mlir-specialize-sizes=sizes=s1=6 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not ltc-opt %s --ltc-mlir-specialize-sizes=sizes=batch 2>&1 | FileCheck %s --check-prefix=SYNTAX
// RUN: not ltc-opt %s --ltc-torch-to-contract 2>&1 | FileCheck %s --check-prefix=CONTRACT

// The module of a program for all sizes, and its specialization to values of
// its two symbols.

// RANGE: symbol batch is 1, which isn't from 2 to 64
// MISSING: symbol batch has no value
// SYNTAX: 'batch' isn't a symbol and its value, such as s0=4
// CONTRACT: BC2

// TEXT-DAG: #[[SIZES:.+]] = affine_map<()[s0, s1] -> (s0, s1, 3)>
// TEXT-DAG: #[[ROWS:.+]] = affine_map<()[s0, s1] -> (s0 * s1, 3)>
// TEXT: %batch = torch.symbolic_int "batch" {min_val = 2, max_val = 64} : !torch.int
// TEXT: torch.bind_symbolic_shape %arg0, [%batch, %s1], #[[SIZES]] : !torch.vtensor<[?,?,3],f32>
// TEXT: torch.aten.size.int %arg0, %int0 : !torch.vtensor<[?,?,3],f32>, !torch.int -> !torch.int
// TEXT: torch.bind_symbolic_shape %{{.*}}, [%batch, %s1], #[[ROWS]]

// CHECK-LABEL: func.func @view(
// CHECK-SAME: %[[X:.*]]: !torch.vtensor<[4,6,3],f32>) -> !torch.vtensor<[24,3],f32>
// CHECK-NOT: symbolic
// CHECK-DAG: %[[ROWS:.*]] = torch.constant.int 24
// CHECK-DAG: %[[COLUMNS:.*]] = torch.constant.int 3
// CHECK-DAG: %[[MEAN:.*]] = torch.constant.float 2.5{{0*}}e-01
// CHECK: %[[SIZES:.*]] = torch.prim.ListConstruct %[[ROWS]], %[[COLUMNS]]
// CHECK: %[[VIEW:.*]] = torch.aten.view %[[X]], %[[SIZES]]
// CHECK: torch.aten.mul.Scalar %[[VIEW]], %[[MEAN]]
func.func @view(%arg0: !torch.vtensor<[?,?,3],f32>) -> !torch.vtensor<[?,3],f32> {
  %batch = torch.symbolic_int "batch" {min_val = 2, max_val = 64} : !torch.int
  %s1 = torch.symbolic_int "s1" {min_val = 2, max_val = 9223372036854775807} : !torch.int
  torch.bind_symbolic_shape %arg0, [%batch, %s1], affine_map<()[s0, s1] -> (s0, s1, 3)> : !torch.vtensor<[?,?,3],f32>
  %int0 = torch.constant.int 0
  %int1 = torch.constant.int 1
  %int3 = torch.constant.int 3
  %float1 = torch.constant.float 1.0
  %n = torch.aten.size.int %arg0, %int0 : !torch.vtensor<[?,?,3],f32>, !torch.int -> !torch.int
  %m = torch.aten.size.int %arg0, %int1 : !torch.vtensor<[?,?,3],f32>, !torch.int -> !torch.int
  %rows = torch.aten.mul.int %n, %m : !torch.int, !torch.int -> !torch.int
  %count = torch.aten.Float.Scalar %n : !torch.int -> !torch.float
  %mean = torch.aten.div.float %float1, %count : !torch.float, !torch.float -> !torch.float
  %sizes = torch.prim.ListConstruct %rows, %int3 : (!torch.int, !torch.int) -> !torch.list<int>
  %0 = torch.aten.view %arg0, %sizes : !torch.vtensor<[?,?,3],f32>, !torch.list<int> -> !torch.vtensor<[?,3],f32>
  torch.bind_symbolic_shape %0, [%batch, %s1], affine_map<()[s0, s1] -> (s0 * s1, 3)> : !torch.vtensor<[?,3],f32>
  %1 = torch.aten.mul.Scalar %0, %mean : !torch.vtensor<[?,3],f32>, !torch.float -> !torch.vtensor<[?,3],f32>
  torch.bind_symbolic_shape %1, [%batch, %s1], affine_map<()[s0, s1] -> (s0 * s1, 3)> : !torch.vtensor<[?,3],f32>
  return %1 : !torch.vtensor<[?,3],f32>
}
