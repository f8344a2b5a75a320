// RUN: ltc-opt %s --split-input-file --verify-diagnostics --ltc-mlir-convert-torch-to-linalg
// RUN: ltc-opt %s --split-input-file --verify-diagnostics --ltc-mlir-convert-torch-to-tosa
// RUN: sed '/expected-error/d' %s | ltc-opt --split-input-file --canonicalize | FileCheck %s

// A dim that a tensor doesn't have isn't folded, and can't be lowered.

// CHECK-LABEL: func.func @permute
func.func @permute(%x: !torch.vtensor<[4,2],f32>) -> !torch.vtensor<[2,4],f32> {
  %zero = torch.constant.int 0
  %large = torch.constant.int 1000000
  %dims = torch.prim.ListConstruct %large, %zero : (!torch.int, !torch.int) -> !torch.list<int>
  // CHECK: torch.aten.permute
  // expected-error@+1 {{aten.permute has arguments or types that contradict each other}}
  %0 = torch.aten.permute %x, %dims : !torch.vtensor<[4,2],f32>, !torch.list<int> -> !torch.vtensor<[2,4],f32>
  return %0 : !torch.vtensor<[2,4],f32>
}

// -----

// CHECK-LABEL: func.func @repeated
func.func @repeated(%x: !torch.vtensor<[4,4],f32>) -> !torch.vtensor<[4,4],f32> {
  %zero = torch.constant.int 0
  %dims = torch.prim.ListConstruct %zero, %zero : (!torch.int, !torch.int) -> !torch.list<int>
  // CHECK: torch.aten.permute
  // expected-error@+1 {{aten.permute has arguments or types that contradict each other}}
  %0 = torch.aten.permute %x, %dims : !torch.vtensor<[4,4],f32>, !torch.list<int> -> !torch.vtensor<[4,4],f32>
  return %0 : !torch.vtensor<[4,4],f32>
}

// -----

// CHECK-LABEL: func.func @transpose
func.func @transpose(%x: !torch.vtensor<[4,2],f32>) -> !torch.vtensor<[2,4],f32> {
  %zero = torch.constant.int 0
  %large = torch.constant.int -1000000
  // CHECK: torch.aten.transpose.int
  // expected-error@+1 {{aten.transpose.int has arguments or types that contradict each other}}
  %0 = torch.aten.transpose.int %x, %zero, %large : !torch.vtensor<[4,2],f32>, !torch.int, !torch.int -> !torch.vtensor<[2,4],f32>
  return %0 : !torch.vtensor<[2,4],f32>
}

// -----

// CHECK-LABEL: func.func @select_of_expanded
func.func @select_of_expanded(%x: !torch.vtensor<[1,2],f32>) -> !torch.vtensor<[2],f32> {
  %large = torch.constant.int 1000000
  %four = torch.constant.int 4
  %two = torch.constant.int 2
  %false = torch.constant.bool false
  %sizes = torch.prim.ListConstruct %four, %two : (!torch.int, !torch.int) -> !torch.list<int>
  %0 = torch.aten.expand %x, %sizes, %false : !torch.vtensor<[1,2],f32>, !torch.list<int>, !torch.bool -> !torch.vtensor<[4,2],f32>
  // CHECK: torch.aten.select.int
  // expected-error@+1 {{aten.select.int has arguments or types that contradict each other}}
  %1 = torch.aten.select.int %0, %large, %two : !torch.vtensor<[4,2],f32>, !torch.int, !torch.int -> !torch.vtensor<[2],f32>
  return %1 : !torch.vtensor<[2],f32>
}
