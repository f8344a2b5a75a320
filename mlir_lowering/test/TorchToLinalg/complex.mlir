// RUN: ltc-opt %s --ltc-torch-to-linalg | FileCheck %s

// A view as pairs of floats is the operand itself; parameters and results are
// marked, because their types don't show that they are complex.
// CHECK-LABEL: func.func @views
// CHECK-SAME: %[[Z:.*]]: tensor<2x3x2xf32> {torch_ltc.complex}
// CHECK-SAME: -> (tensor<2x3x2xf32>, tensor<2x3x2xf32> {torch_ltc.complex})
// CHECK-NEXT: return %[[Z]], %[[Z]]
func.func @views(%z: !torch.vtensor<[2,3],complex<f32>>) -> (!torch.vtensor<[2,3,2],f32>, !torch.vtensor<[2,3],complex<f32>>) {
  %0 = torch.aten.view_as_real %z : !torch.vtensor<[2,3],complex<f32>> -> !torch.vtensor<[2,3,2],f32>
  %1 = torch.aten.view_as_complex %0 : !torch.vtensor<[2,3,2],f32> -> !torch.vtensor<[2,3],complex<f32>>
  return %0, %1 : !torch.vtensor<[2,3,2],f32>, !torch.vtensor<[2,3],complex<f32>>
}

// Whatever an op's row says, PyTorch's kernel computes it for complex numbers.
// CHECK-LABEL: func.func @product
// CHECK: ltc.host_call "aten::mul.Tensor"(%{{.*}}, %{{.*}}) {arguments = [complex<f64>, complex<f64>], result_dtypes = [complex<f64>]}
func.func @product(%z: !torch.vtensor<[3],complex<f64>>) -> !torch.vtensor<[3],complex<f64>> {
  %0 = torch.aten.mul.Tensor %z, %z : !torch.vtensor<[3],complex<f64>>, !torch.vtensor<[3],complex<f64>> -> !torch.vtensor<[3],complex<f64>>
  return %0 : !torch.vtensor<[3],complex<f64>>
}

// A complex number is a tensor of rank 0.
// CHECK-LABEL: func.func @number
// CHECK: ltc.host_call "aten::mul.Scalar"(%{{.*}}, %{{.*}}) {arguments = [f32, complex<f64>], result_dtypes = [complex<f32>]} : (tensor<3xf32>, tensor<2xf64>)
func.func @number(%x: !torch.vtensor<[3],f32>, %n: !torch.vtensor<[],complex<f64>>) -> !torch.vtensor<[3],complex<f32>> {
  %0 = torch.aten.mul.Scalar %x, %n : !torch.vtensor<[3],f32>, !torch.vtensor<[],complex<f64>> -> !torch.vtensor<[3],complex<f32>>
  return %0 : !torch.vtensor<[3],complex<f32>>
}

// An element of a list that is none is unit.
// CHECK-LABEL: func.func @index
// CHECK: ltc.host_call "aten::index.Tensor"(%{{.*}}, %{{.*}}) {arguments = [complex<f32>, [unit, si64]]
func.func @index(%z: !torch.vtensor<[2,3],complex<f32>>, %i: !torch.vtensor<[4],si64>) -> !torch.vtensor<[2,4],complex<f32>> {
  %none = torch.constant.none
  %list = torch.prim.ListConstruct %none, %i : (!torch.none, !torch.vtensor<[4],si64>) -> !torch.list<optional<vtensor>>
  %0 = torch.aten.index.Tensor %z, %list : !torch.vtensor<[2,3],complex<f32>>, !torch.list<optional<vtensor>> -> !torch.vtensor<[2,4],complex<f32>>
  return %0 : !torch.vtensor<[2,4],complex<f32>>
}
