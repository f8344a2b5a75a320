// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops{portable}))' | FileCheck %s
// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops))' | FileCheck %s --check-prefix=OURS
// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops{portable legal-ops=aten._prelu_kernel}))' | FileCheck %s --check-prefix=LEGAL

// CHECK-LABEL: func.func @select_backward
// CHECK-NOT: aten.select_backward
// CHECK: torch.aten.unsqueeze
// CHECK: torch.aten.cat {{.*}} -> !torch.vtensor<[5,3],f32>
// OURS: torch.aten.select_backward
func.func @select_backward(%grad: !torch.vtensor<[3],f32>) -> !torch.vtensor<[5,3],f32> {
  %dim = torch.constant.int 0
  %index = torch.constant.int 2
  %five = torch.constant.int 5
  %three = torch.constant.int 3
  %sizes = torch.prim.ListConstruct %five, %three : (!torch.int, !torch.int) -> !torch.list<int>
  %0 = torch.aten.select_backward %grad, %sizes, %dim, %index : !torch.vtensor<[3],f32>, !torch.list<int>, !torch.int, !torch.int -> !torch.vtensor<[5,3],f32>
  return %0 : !torch.vtensor<[5,3],f32>
}

// CHECK-LABEL: func.func @prelu
// CHECK-DAG: torch.aten.mul.Tensor
// CHECK-DAG: torch.aten.gt.Scalar
// CHECK: torch.aten.where.self
// OURS: torch.aten._prelu_kernel
// LEGAL: torch.aten._prelu_kernel
func.func @prelu(%x: !torch.vtensor<[4],f32>, %weight: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %0 = torch.aten._prelu_kernel %x, %weight : !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}
