// RUN: ltc-opt %s | ltc-opt | FileCheck %s

// CHECK-LABEL: func.func @step
func.func @step(%a: tensor<4x8xf32>, %b: tensor<16x8xf32>, %s: f64,
                %x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>)
    -> (tensor<4x16xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) {
  // CHECK: ltc.library_call "matmul"(%{{.*}}, %{{.*}}) {transpose_b} : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %c = ltc.library_call "matmul"(%a, %b) {transpose_b}
      : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  // CHECK: ltc.kernel_call @scale(%{{.*}}, %{{.*}}) : (tensor<4x16xf32>, f64) -> tensor<4x16xf32>
  %d = ltc.kernel_call @scale(%c, %s) : (tensor<4x16xf32>, f64) -> tensor<4x16xf32>
  %y = ltc.library_call "convolution_forward"(%x, %w)
      {stride = array<i64: 2, 2>, padding = array<i64: 1, 1>,
       dilation = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x4x4xf32>
  // CHECK: ltc.library_call "convolution_backward_weight"
  %gw:2 = ltc.library_call "convolution_backward_weight"(%y, %x)
      {stride = array<i64: 2, 2>, padding = array<i64: 1, 1>,
       dilation = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<2x4x4x4xf32>, tensor<2x3x8x8xf32>) -> (tensor<4x3x3x3xf32>, tensor<4xf32>)
  return %d, %gw#0, %gw#1 : tensor<4x16xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>
}

func.func private @scale(%a: tensor<4x16xf32>, %s: f64) -> tensor<4x16xf32> {
  return %a : tensor<4x16xf32>
}
