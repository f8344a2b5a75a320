// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops))' | FileCheck %s

// CHECK-LABEL: func.func @stack
// CHECK: %[[A:.*]] = torch.aten.unsqueeze %arg0
// CHECK: %[[B:.*]] = torch.aten.unsqueeze %arg1
// CHECK: %[[LIST:.*]] = torch.prim.ListConstruct %[[A]], %[[B]]
// CHECK: torch.aten.cat %[[LIST]]
func.func @stack(%a: !torch.vtensor<[3],f32>, %b: !torch.vtensor<[3],f32>) -> !torch.vtensor<[3,2],f32> {
  %dim = torch.constant.int -1
  %list = torch.prim.ListConstruct %a, %b : (!torch.vtensor<[3],f32>, !torch.vtensor<[3],f32>) -> !torch.list<vtensor>
  %0 = torch.aten.stack %list, %dim : !torch.list<vtensor>, !torch.int -> !torch.vtensor<[3,2],f32>
  return %0 : !torch.vtensor<[3,2],f32>
}

// The list of the parts and its unpacking are folded, so only slices remain.
// CHECK-LABEL: func.func @split
// CHECK-NOT: torch.prim.List
// CHECK-DAG: torch.aten.slice.Tensor {{.*}} -> !torch.vtensor<[3],f32>
// CHECK-DAG: torch.aten.slice.Tensor {{.*}} -> !torch.vtensor<[2],f32>
// CHECK-NOT: torch.prim.List
func.func @split(%x: !torch.vtensor<[5],f32>) -> (!torch.vtensor<[3],f32>, !torch.vtensor<[2],f32>) {
  %int3 = torch.constant.int 3
  %int0 = torch.constant.int 0
  %list = torch.aten.split.Tensor %x, %int3, %int0 : !torch.vtensor<[5],f32>, !torch.int, !torch.int -> !torch.list<vtensor>
  %0:2 = torch.prim.ListUnpack %list : !torch.list<vtensor> -> !torch.vtensor<[3],f32>, !torch.vtensor<[2],f32>
  return %0#0, %0#1 : !torch.vtensor<[3],f32>, !torch.vtensor<[2],f32>
}
