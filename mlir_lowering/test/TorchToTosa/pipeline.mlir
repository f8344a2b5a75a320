// RUN: ltc-opt %s --ltc-torch-to-tosa | FileCheck %s
// RUN: ltc-opt %s --ltc-torch-to-tosa --ltc-tosa-to-linalg | FileCheck %s --check-prefix=LINALG

// Ops that TOSA doesn't support directly are decomposed first.

// CHECK-LABEL: func.func @softmax
// CHECK: tosa.reduce_max
// CHECK: tosa.exp
// CHECK: tosa.reduce_sum
// CHECK: tosa.reciprocal
// CHECK-NOT: torch.
// LINALG-LABEL: func.func @softmax
// LINALG: linalg.reduce
// LINALG-NOT: tosa.
func.func @softmax(%a: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,3],f32> {
  %1 = torch.constant.int 1
  %false = torch.constant.bool false
  %0 = torch.aten._softmax %a, %1, %false : !torch.vtensor<[2,3],f32>, !torch.int, !torch.bool -> !torch.vtensor<[2,3],f32>
  return %0 : !torch.vtensor<[2,3],f32>
}
