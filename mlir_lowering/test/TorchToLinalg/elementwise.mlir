// RUN: ltc-opt %s --ltc-mlir-convert-torch-to-linalg --split-input-file | FileCheck %s

// Broadcasts become indexing maps; attributes of arguments are preserved.

// CHECK-DAG: #[[ID:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.+]] = affine_map<(d0, d1) -> (0, d1)>
// CHECK-LABEL: func.func @broadcast
// CHECK-SAME: %[[A:.+]]: tensor<2x3xf32> {torch_ltc.name = "x"}, %[[B:.+]]: tensor<1x3xf32>
func.func @broadcast(%a: !torch.vtensor<[2,3],f32> {torch_ltc.name = "x"},
                     %b: !torch.vtensor<[1,3],f32>) -> !torch.vtensor<[2,3],f32> {
  %one = torch.constant.int 1
  // CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[ROW]], #[[ID]]], iterator_types = ["parallel", "parallel"]}
  // CHECK-SAME: ins(%[[A]], %[[B]] :
  // CHECK: %[[SUM:.+]] = arith.addf
  // CHECK: linalg.yield %[[SUM]]
  // CHECK-NOT: torch.
  %0 = torch.aten.add.Tensor %a, %b, %one : !torch.vtensor<[2,3],f32>, !torch.vtensor<[1,3],f32>, !torch.int -> !torch.vtensor<[2,3],f32>
  return %0 : !torch.vtensor<[2,3],f32>
}

// -----

// A dynamic scalar stays a scalar: the body reads it, and no tensor is created.

// CHECK-LABEL: func.func @scalar_parameter
// CHECK-SAME: %[[A:.+]]: tensor<4xf32>, %[[LR:.+]]: f64
func.func @scalar_parameter(%a: !torch.vtensor<[4],f32>, %lr: !torch.float) -> !torch.vtensor<[4],f32> {
  %0 = torch.prim.NumToTensor.Scalar %lr : !torch.float -> !torch.vtensor<[],f64>
  // CHECK: linalg.generic {{.*}} ins(%[[A]] : tensor<4xf32>)
  // CHECK: %[[NARROW:.+]] = arith.truncf %[[LR]] : f64 to f32
  // CHECK: arith.mulf %{{.+}}, %[[NARROW]]
  %1 = torch.aten.mul.Tensor %a, %0 : !torch.vtensor<[4],f32>, !torch.vtensor<[],f64> -> !torch.vtensor<[4],f32>
  return %1 : !torch.vtensor<[4],f32>
}

// -----

// 16-bit floats are computed in f32 and rounded once.

// CHECK-LABEL: func.func @bfloat16
func.func @bfloat16(%a: !torch.vtensor<[4],bf16>, %b: !torch.vtensor<[4],bf16>) -> !torch.vtensor<[4],bf16> {
  %two = torch.constant.float 2.0
  // CHECK: linalg.generic
  // CHECK-DAG: arith.extf %in : bf16 to f32
  // CHECK-DAG: arith.extf %in_0 : bf16 to f32
  // CHECK-DAG: arith.mulf {{.*}} : f32
  // CHECK: arith.addf {{.*}} : f32
  // CHECK: arith.truncf {{.*}} : f32 to bf16
  // CHECK-NOT: arith.truncf
  %0 = torch.aten.add.Tensor %a, %b, %two : !torch.vtensor<[4],bf16>, !torch.vtensor<[4],bf16>, !torch.float -> !torch.vtensor<[4],bf16>
  return %0 : !torch.vtensor<[4],bf16>
}

// -----

// The dtype determines the signedness, because the storage type is signless.

// CHECK-LABEL: func.func @unsigned
// CHECK-SAME: tensor<4xi8>
func.func @unsigned(%a: !torch.vtensor<[4],ui8>, %b: !torch.vtensor<[4],ui8>) -> !torch.vtensor<[4],i1> {
  // CHECK: arith.cmpi ult
  %0 = torch.aten.lt.Tensor %a, %b : !torch.vtensor<[4],ui8>, !torch.vtensor<[4],ui8> -> !torch.vtensor<[4],i1>
  return %0 : !torch.vtensor<[4],i1>
}

// -----

// A clone is replaced by its operand.

// CHECK-LABEL: func.func @identity
// CHECK-SAME: %[[A:.+]]: tensor<4xf32>
// CHECK-NEXT: return %[[A]]
func.func @identity(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %none = torch.constant.none
  %0 = torch.aten.clone %a, %none : !torch.vtensor<[4],f32>, !torch.none -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}
