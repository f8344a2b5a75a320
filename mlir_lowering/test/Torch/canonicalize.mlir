// RUN: ltc-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: func.func @identities
// CHECK-NEXT: return %arg0
func.func @identities(%a: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,3],f32> {
  %int0 = torch.constant.int 0
  %int1 = torch.constant.int 1
  %int2 = torch.constant.int 2
  %int3 = torch.constant.int 3
  %int6 = torch.constant.int 6
  %false = torch.constant.bool false
  %none = torch.constant.none
  %sizes = torch.prim.ListConstruct %int2, %int3 : (!torch.int, !torch.int) -> !torch.list<int>
  %0 = torch.aten.view %a, %sizes : !torch.vtensor<[2,3],f32>, !torch.list<int> -> !torch.vtensor<[2,3],f32>
  %1 = torch.aten.expand %0, %sizes, %false : !torch.vtensor<[2,3],f32>, !torch.list<int>, !torch.bool -> !torch.vtensor<[2,3],f32>
  %2 = torch.aten.clone %1, %none : !torch.vtensor<[2,3],f32>, !torch.none -> !torch.vtensor<[2,3],f32>
  %3 = torch.aten._to_copy %2, %int6, %none, %none, %none, %false, %none : !torch.vtensor<[2,3],f32>, !torch.int, !torch.none, !torch.none, !torch.none, !torch.bool, !torch.none -> !torch.vtensor<[2,3],f32>
  %4 = torch.aten.slice.Tensor %3, %int1, %int0, %int3, %int1 : !torch.vtensor<[2,3],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[2,3],f32>
  // Two transposes cancel each other.
  %5 = torch.aten.t %4 : !torch.vtensor<[2,3],f32> -> !torch.vtensor<[3,2],f32>
  %6 = torch.aten.transpose.int %5, %int0, %int1 : !torch.vtensor<[3,2],f32>, !torch.int, !torch.int -> !torch.vtensor<[2,3],f32>
  return %6 : !torch.vtensor<[2,3],f32>
}

// CHECK-LABEL: func.func @permutations
// CHECK: %[[DIMS:.*]] = torch.prim.ListConstruct %int1, %int2, %int0
// CHECK: %[[P:.*]] = torch.aten.permute %arg0, %[[DIMS]]
// CHECK-NEXT: return %[[P]]
func.func @permutations(%a: !torch.vtensor<[2,3,4],f32>) -> !torch.vtensor<[3,4,2],f32> {
  %int0 = torch.constant.int 0
  %int1 = torch.constant.int 1
  %int-1 = torch.constant.int -1
  %0 = torch.aten.transpose.int %a, %int0, %int1 : !torch.vtensor<[2,3,4],f32>, !torch.int, !torch.int -> !torch.vtensor<[3,2,4],f32>
  %1 = torch.aten.transpose.int %0, %int1, %int-1 : !torch.vtensor<[3,2,4],f32>, !torch.int, !torch.int -> !torch.vtensor<[3,4,2],f32>
  return %1 : !torch.vtensor<[3,4,2],f32>
}

// CHECK-LABEL: func.func @views
// CHECK: %[[V:.*]] = torch.aten.view %arg0
// CHECK-NEXT: return %[[V]]
func.func @views(%a: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[3,2],f32> {
  %int2 = torch.constant.int 2
  %int3 = torch.constant.int 3
  %int6 = torch.constant.int 6
  %flat = torch.prim.ListConstruct %int6 : (!torch.int) -> !torch.list<int>
  %sizes = torch.prim.ListConstruct %int3, %int2 : (!torch.int, !torch.int) -> !torch.list<int>
  %0 = torch.aten.view %a, %flat : !torch.vtensor<[2,3],f32>, !torch.list<int> -> !torch.vtensor<[6],f32>
  %1 = torch.aten.view %0, %sizes : !torch.vtensor<[6],f32>, !torch.list<int> -> !torch.vtensor<[3,2],f32>
  return %1 : !torch.vtensor<[3,2],f32>
}

// A part of an expanded tensor is computed from a part of the original one.
// CHECK-LABEL: func.func @parts_of_expanded
// CHECK-NOT: 400
// CHECK: %[[S:.*]] = torch.aten.slice.Tensor %arg0, %int0, %int1, %int3, %int1
// CHECK-SAME: -> !torch.vtensor<[2,1],f32>
// CHECK: %[[V:.*]] = torch.aten.view %[[S]]
// CHECK-SAME: -> !torch.vtensor<[2],f32>
// CHECK: %[[E:.*]] = torch.aten.expand %[[V]]
// CHECK-SAME: -> !torch.vtensor<[3,2],f32>
// CHECK-NEXT: return %[[E]]
func.func @parts_of_expanded(%a: !torch.vtensor<[8,1],f32>) -> !torch.vtensor<[3,2],f32> {
  %int0 = torch.constant.int 0
  %int1 = torch.constant.int 1
  %int3 = torch.constant.int 3
  %int7 = torch.constant.int 7
  %int8 = torch.constant.int 8
  %int-1 = torch.constant.int -1
  %int400 = torch.constant.int 400
  %false = torch.constant.bool false
  %sizes = torch.prim.ListConstruct %int400, %int8, %int400 : (!torch.int, !torch.int, !torch.int) -> !torch.list<int>
  %0 = torch.aten.expand %a, %sizes, %false : !torch.vtensor<[8,1],f32>, !torch.list<int>, !torch.bool -> !torch.vtensor<[400,8,400],f32>
  %1 = torch.aten.slice.Tensor %0, %int0, %int0, %int3, %int1 : !torch.vtensor<[400,8,400],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[3,8,400],f32>
  %2 = torch.aten.slice.Tensor %1, %int1, %int1, %int3, %int1 : !torch.vtensor<[3,8,400],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[3,2,400],f32>
  %3 = torch.aten.select.int %2, %int-1, %int7 : !torch.vtensor<[3,2,400],f32>, !torch.int, !torch.int -> !torch.vtensor<[3,2],f32>
  return %3 : !torch.vtensor<[3,2],f32>
}

// Neither a transpose of a square matrix nor a cast to another dtype is an
// identity.
// CHECK-LABEL: func.func @kept
// CHECK: torch.aten.t
// CHECK: torch.aten._to_copy
func.func @kept(%a: !torch.vtensor<[2,2],f32>) -> !torch.vtensor<[2,2],f64> {
  %int7 = torch.constant.int 7
  %false = torch.constant.bool false
  %none = torch.constant.none
  %0 = torch.aten.t %a : !torch.vtensor<[2,2],f32> -> !torch.vtensor<[2,2],f32>
  %1 = torch.aten._to_copy %0, %int7, %none, %none, %none, %false, %none : !torch.vtensor<[2,2],f32>, !torch.int, !torch.none, !torch.none, !torch.none, !torch.bool, !torch.none -> !torch.vtensor<[2,2],f64>
  return %1 : !torch.vtensor<[2,2],f64>
}

// CHECK-LABEL: func.func @lists
// CHECK-NEXT: return %arg1
func.func @lists(%a: !torch.vtensor<[2],f32>, %b: !torch.vtensor<[3],f32>) -> !torch.vtensor<[3],f32> {
  %0 = torch.prim.ListConstruct %a, %b : (!torch.vtensor<[2],f32>, !torch.vtensor<[3],f32>) -> !torch.list<vtensor>
  %1:2 = torch.prim.ListUnpack %0 : !torch.list<vtensor> -> !torch.vtensor<[2],f32>, !torch.vtensor<[3],f32>
  return %1#1 : !torch.vtensor<[3],f32>
}
