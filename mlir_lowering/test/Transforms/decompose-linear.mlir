// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops))' | FileCheck %s

// CHECK-LABEL: func.func @addmm
// CHECK-SAME: %[[BIAS:.*]]: !torch.vtensor<[5],f32>, %[[A:.*]]: !torch.vtensor<[3,4],f32>, %[[B:.*]]: !torch.vtensor<[4,5],f32>
// CHECK: %[[PRODUCT:.*]] = torch.aten.mm %[[A]], %[[B]]
// CHECK-NOT: torch.aten.mul
// CHECK: %[[Y:.*]] = torch.aten.add.Tensor %[[PRODUCT]], %[[BIAS]]
// CHECK: return %[[Y]]
func.func @addmm(%bias: !torch.vtensor<[5],f32>, %a: !torch.vtensor<[3,4],f32>, %b: !torch.vtensor<[4,5],f32>) -> !torch.vtensor<[3,5],f32> {
  %int1 = torch.constant.int 1
  %0 = torch.aten.addmm %bias, %a, %b, %int1, %int1 : !torch.vtensor<[5],f32>, !torch.vtensor<[3,4],f32>, !torch.vtensor<[4,5],f32>, !torch.int, !torch.int -> !torch.vtensor<[3,5],f32>
  return %0 : !torch.vtensor<[3,5],f32>
}

// If beta is 0, the addend isn't read; alpha may be a dynamic scalar.
// CHECK-LABEL: func.func @baddbmm
// CHECK-SAME: %[[ADDEND:[^:]*]]: !torch.vtensor<[2,3,5],f32>
// CHECK-SAME: %[[ALPHA:[^:]*]]: !torch.int
// CHECK-NOT: %[[ADDEND]]
// CHECK: torch.aten.bmm
// CHECK: torch.aten.mul.Scalar %{{.*}}, %[[ALPHA]]
// CHECK-NOT: torch.aten.add
func.func @baddbmm(%c: !torch.vtensor<[2,3,5],f32>, %a: !torch.vtensor<[2,3,4],f32>, %b: !torch.vtensor<[2,4,5],f32>, %alpha: !torch.int) -> !torch.vtensor<[2,3,5],f32> {
  %int0 = torch.constant.int 0
  %0 = torch.aten.baddbmm %c, %a, %b, %int0, %alpha : !torch.vtensor<[2,3,5],f32>, !torch.vtensor<[2,3,4],f32>, !torch.vtensor<[2,4,5],f32>, !torch.int, !torch.int -> !torch.vtensor<[2,3,5],f32>
  return %0 : !torch.vtensor<[2,3,5],f32>
}
