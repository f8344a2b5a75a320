// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops))' | FileCheck %s

// The value must be in the range of int8, as in c10::checked_convert.
// CHECK-LABEL: func.func @fill_of_a_narrow_dtype
// CHECK-DAG: %[[LOWEST:.*]] = torch.constant.int -128
// CHECK-DAG: %[[HIGHEST:.*]] = torch.constant.int 127
// CHECK: torch.aten.ge.Scalar %arg2, %[[LOWEST]] : !torch.vtensor<[],si64>
// CHECK: torch.aten.le.Scalar %arg2, %[[HIGHEST]] : !torch.vtensor<[],si64>
// CHECK: torch.aten.logical_and
// CHECK: %[[ZERO:.*]] = torch.aten.gather
// CHECK: %[[VALUE:.*]] = torch.aten.add.Tensor {{.*}} !torch.vtensor<[],si8>
// CHECK: torch.aten.masked_fill.Tensor %arg0, %arg1, %[[VALUE]]
func.func @fill_of_a_narrow_dtype(%x: !torch.vtensor<[3],si8>, %mask: !torch.vtensor<[3],i1>, %value: !torch.vtensor<[],si64>) -> !torch.vtensor<[3],si8> {
  %0 = torch.aten.masked_fill.Tensor %x, %mask, %value : !torch.vtensor<[3],si8>, !torch.vtensor<[3],i1>, !torch.vtensor<[],si64> -> !torch.vtensor<[3],si8>
  return %0 : !torch.vtensor<[3],si8>
}

// Every float32 value is in the range of float64, so it isn't checked.
// CHECK-LABEL: func.func @fill_of_a_wide_dtype
// CHECK-NEXT: torch.aten.masked_fill.Tensor
// CHECK-NEXT: return
func.func @fill_of_a_wide_dtype(%x: !torch.vtensor<[3],f64>, %mask: !torch.vtensor<[3],i1>, %value: !torch.vtensor<[],f32>) -> !torch.vtensor<[3],f64> {
  %0 = torch.aten.masked_fill.Tensor %x, %mask, %value : !torch.vtensor<[3],f64>, !torch.vtensor<[3],i1>, !torch.vtensor<[],f32> -> !torch.vtensor<[3],f64>
  return %0 : !torch.vtensor<[3],f64>
}

// Every int32 value is in the range of int64, so it isn't checked.
// CHECK-LABEL: func.func @fill_of_int64
// CHECK-NEXT: torch.aten.masked_fill.Tensor
// CHECK-NEXT: return
func.func @fill_of_int64(%x: !torch.vtensor<[3],si64>, %mask: !torch.vtensor<[3],i1>, %value: !torch.vtensor<[],si32>) -> !torch.vtensor<[3],si64> {
  %0 = torch.aten.masked_fill.Tensor %x, %mask, %value : !torch.vtensor<[3],si64>, !torch.vtensor<[3],i1>, !torch.vtensor<[],si32> -> !torch.vtensor<[3],si64>
  return %0 : !torch.vtensor<[3],si64>
}
