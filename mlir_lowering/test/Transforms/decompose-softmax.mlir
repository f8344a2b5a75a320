// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops))' | FileCheck %s
// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops{legal-ops=aten._softmax}))' | FileCheck %s --check-prefix=LEGAL

// CHECK-LABEL: func.func @softmax
// CHECK-SAME: %[[X:.*]]: !torch.vtensor<[2,3],f32>
// CHECK: %[[MAX:.*]] = torch.aten.amax %[[X]], {{.*}} -> !torch.vtensor<[2,1],f32>
// CHECK: %[[SHIFTED:.*]] = torch.aten.sub.Tensor %[[X]], %[[MAX]], {{.*}} -> !torch.vtensor<[2,3],f32>
// CHECK: %[[EXP:.*]] = torch.aten.exp %[[SHIFTED]]
// CHECK: %[[SUM:.*]] = torch.aten.sum.dim_IntList %[[EXP]], {{.*}} -> !torch.vtensor<[2,1],f32>
// CHECK: %[[Y:.*]] = torch.aten.div.Tensor %[[EXP]], %[[SUM]]
// CHECK: return %[[Y]]
// LEGAL-LABEL: func.func @softmax
// LEGAL: torch.aten._softmax
// LEGAL-LABEL: func.func @log_softmax_bf16
// LEGAL-NOT: torch.aten._log_softmax
func.func @softmax(%x: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,3],f32> {
  %dim = torch.constant.int -1
  %false = torch.constant.bool false
  %0 = torch.aten._softmax %x, %dim, %false : !torch.vtensor<[2,3],f32>, !torch.int, !torch.bool -> !torch.vtensor<[2,3],f32>
  return %0 : !torch.vtensor<[2,3],f32>
}

// A log softmax of bfloat16 is computed in float32 and rounded once.
// CHECK-LABEL: func.func @log_softmax_bf16
// CHECK: torch.aten._to_copy {{.*}} -> !torch.vtensor<[2,3],f32>
// CHECK: torch.aten.amax
// CHECK: torch.aten.log {{.*}} : !torch.vtensor<[2,1],f32>
// CHECK: torch.aten.sub.Tensor {{.*}} -> !torch.vtensor<[2,3],f32>
// CHECK: %[[Y:.*]] = torch.aten._to_copy {{.*}} -> !torch.vtensor<[2,3],bf16>
// CHECK-NEXT: return %[[Y]]
func.func @log_softmax_bf16(%x: !torch.vtensor<[2,3],bf16>) -> !torch.vtensor<[2,3],bf16> {
  %dim = torch.constant.int 1
  %false = torch.constant.bool false
  %0 = torch.aten._log_softmax %x, %dim, %false : !torch.vtensor<[2,3],bf16>, !torch.int, !torch.bool -> !torch.vtensor<[2,3],bf16>
  return %0 : !torch.vtensor<[2,3],bf16>
}

// A tensor of rank 0, for which torch accepts dimension 0, is viewed as [1].
// CHECK-LABEL: func.func @softmax_rank0
// CHECK: torch.aten.view {{.*}} -> !torch.vtensor<[1],f64>
// CHECK: torch.aten.view {{.*}} -> !torch.vtensor<[],f64>
func.func @softmax_rank0(%x: !torch.vtensor<[],f64>) -> !torch.vtensor<[],f64> {
  %dim = torch.constant.int 0
  %false = torch.constant.bool false
  %0 = torch.aten._softmax %x, %dim, %false : !torch.vtensor<[],f64>, !torch.int, !torch.bool -> !torch.vtensor<[],f64>
  return %0 : !torch.vtensor<[],f64>
}

// The softmax of an empty tensor computes nothing: the maximum of an empty
// tensor would be an error.
// CHECK-LABEL: func.func @empty
// CHECK-NOT: amax
// CHECK: torch.aten.full {{.*}} -> !torch.vtensor<[2,0],f32>
func.func @empty(%x: !torch.vtensor<[2,0],f32>) -> !torch.vtensor<[2,0],f32> {
  %dim = torch.constant.int 1
  %false = torch.constant.bool false
  %0 = torch.aten._softmax %x, %dim, %false : !torch.vtensor<[2,0],f32>, !torch.int, !torch.bool -> !torch.vtensor<[2,0],f32>
  return %0 : !torch.vtensor<[2,0],f32>
}
