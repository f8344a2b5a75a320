// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-expand-library-calls))' | FileCheck %s

// CHECK: #[[$INPUT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d3, d4 * 2 + d6, d5 + d7 * 3)>

// CHECK-LABEL: @forward
// CHECK-NOT: ltc.
// CHECK: linalg.generic {indexing_maps = [#[[$INPUT]],
// CHECK-SAME: "parallel", "parallel", "parallel", "reduction", "parallel", "parallel", "reduction", "reduction"
func.func @forward(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3x2xf32>) -> tensor<1x6x4x7xf32> {
  %y = ltc.convolution %x, %w
      {stride = array<i64: 2, 1>, padding = array<i64: 0, 1>, dilation = array<i64: 1, 3>, groups = 2 : i64}
      : (tensor<1x4x9x8xf32>, tensor<6x2x3x2xf32>) -> tensor<1x6x4x7xf32>
  return %y : tensor<1x6x4x7xf32>
}

// The output's gradient is inserted into zeros at every second position.
// CHECK-LABEL: @input_gradient
// CHECK: tensor.insert_slice {{.*}}[0, 0, 0, 1, 1] [1, 1, 2, 3, 3] [1, 1, 1, 2, 2]
// CHECK: linalg.generic
func.func @input_gradient(%g: tensor<1x2x3x3xf32>, %w: tensor<2x1x3x3xf32>) -> tensor<1x1x5x5xf32> {
  %y = ltc.convolution_backward_input %g, %w
      {stride = array<i64: 2, 2>, padding = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<1x2x3x3xf32>, tensor<2x1x3x3xf32>) -> tensor<1x1x5x5xf32>
  return %y : tensor<1x1x5x5xf32>
}

// Sums of bfloat16 are computed in f32.
// CHECK-LABEL: @weight_gradient
// CHECK: arith.extf
// CHECK: arith.truncf
func.func @weight_gradient(%g: tensor<1x2x3xbf16>, %x: tensor<1x1x5xbf16>) -> (tensor<2x1x3xbf16>, tensor<2xbf16>) {
  %y:2 = ltc.convolution_backward_weight %g, %x
      {stride = array<i64: 1>, padding = array<i64: 0>, dilation = array<i64: 1>, groups = 1 : i64}
      : (tensor<1x2x3xbf16>, tensor<1x1x5xbf16>) -> (tensor<2x1x3xbf16>, tensor<2xbf16>)
  return %y#0, %y#1 : tensor<2x1x3xbf16>, tensor<2xbf16>
}

// Bounds checks are removed, because other compilers don't support them.
// CHECK-LABEL: @checked
// CHECK-NEXT: return %arg0
func.func @checked(%ids: tensor<4xi64>) -> tensor<4xi64> {
  %0 = ltc.check_bounds %ids in [0, 9) : tensor<4xi64>
  return %0 : tensor<4xi64>
}

// A host call of topk becomes a stable sort, because other compilers can't call
// PyTorch's kernel.
// CHECK-LABEL: @topk
// CHECK-NOT: ltc.
// CHECK: arith.cmpf ogt
// CHECK: tensor.extract_slice
func.func @topk(%x: tensor<2x9xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>) {
  %v:2 = ltc.host_call "aten::topk"(%x)
      {arguments = [f32, 3, 1, true, true], result_dtypes = [f32, si64]}
      : (tensor<2x9xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  return %v#0, %v#1 : tensor<2x3xf32>, tensor<2x3xi64>
}
