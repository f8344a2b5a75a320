// RUN: ltc-opt %s | ltc-opt | FileCheck %s

// CHECK-LABEL: func.func @step
func.func @step(%a: tensor<4x8xf32>, %b: tensor<16x8xf32>, %s: f64,
                %x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>)
    -> (tensor<4x16xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) {
  // CHECK: ltc.matmul %{{.*}}, %{{.*}} {transpose_b} : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %c = ltc.matmul %a, %b {transpose_b}
      : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  // CHECK: ltc.kernel_call @scale(%{{.*}}, %{{.*}}) : (tensor<4x16xf32>, f64) -> tensor<4x16xf32>
  %d = ltc.kernel_call @scale(%c, %s) : (tensor<4x16xf32>, f64) -> tensor<4x16xf32>
  // CHECK: ltc.convolution %{{.*}}, %{{.*}} {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1>, stride = array<i64: 2, 2>}
  %y = ltc.convolution %x, %w
      {stride = array<i64: 2, 2>, padding = array<i64: 1, 1>,
       dilation = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x4x4xf32>
  // CHECK: ltc.convolution_backward_weight %{{.*}}, %{{.*}} {
  %gw:2 = ltc.convolution_backward_weight %y, %x
      {stride = array<i64: 2, 2>, padding = array<i64: 1, 1>,
       dilation = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<2x4x4x4xf32>, tensor<2x3x8x8xf32>) -> (tensor<4x3x3x3xf32>, tensor<4xf32>)
  return %d, %gw#0, %gw#1 : tensor<4x16xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>
}

func.func private @scale(%a: tensor<4x16xf32>, %s: f64) -> tensor<4x16xf32> {
  return %a : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @host
func.func @host(%x: tensor<2x9xi8>) -> (tensor<2x3xi8>, tensor<2x3xi64>) {
  // CHECK: ltc.host_call "aten::topk"(%{{.*}}) {arguments = [ui8, 3, 1, true, true], result_dtypes = [ui8, si64]}
  %v:2 = ltc.host_call "aten::topk"(%x)
      {arguments = [ui8, 3, 1, true, true], result_dtypes = [ui8, si64]}
      : (tensor<2x9xi8>) -> (tensor<2x3xi8>, tensor<2x3xi64>)
  return %v#0, %v#1 : tensor<2x3xi8>, tensor<2x3xi64>
}

// CHECK-LABEL: func.func @divisors
func.func @divisors(%x: tensor<3xi8>) -> tensor<3xi8> {
  // CHECK: ltc.check_bounds %{{.*}} in[0, 0) {nonzero} : tensor<3xi8>
  %c = ltc.check_bounds %x in [0, 0) {nonzero} : tensor<3xi8>
  return %c : tensor<3xi8>
}

// CHECK-LABEL: func.func @biases
func.func @biases(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>,
                  %images: tensor<2x4x5xf32>, %taps: tensor<6x2x3xf32>, %c: tensor<6xf32>)
    -> (tensor<4x16xf32>, tensor<2x6x3xf32>, tensor<2x4x5xf32>) {
  // CHECK: ltc.matmul %{{.*}}, %{{.*}} bias %{{.*}} : (tensor<4x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %y = ltc.matmul %x, %w bias %b
      : (tensor<4x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  // CHECK: ltc.convolution %{{.*}}, %{{.*}} bias %{{.*}} {
  %z = ltc.convolution %images, %taps bias %c
      {stride = array<i64: 1>, padding = array<i64: 0>, dilation = array<i64: 1>, groups = 2 : i64}
      : (tensor<2x4x5xf32>, tensor<6x2x3xf32>, tensor<6xf32>) -> tensor<2x6x3xf32>
  // CHECK: ltc.convolution_backward_input %{{.*}}, %{{.*}} {
  %g = ltc.convolution_backward_input %z, %taps
      {stride = array<i64: 1>, padding = array<i64: 0>, dilation = array<i64: 1>, groups = 2 : i64}
      : (tensor<2x6x3xf32>, tensor<6x2x3xf32>) -> tensor<2x4x5xf32>
  return %y, %z, %g : tensor<4x16xf32>, tensor<2x6x3xf32>, tensor<2x4x5xf32>
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x3x8xf32>, %v: tensor<1x2x3x6xf32>,
                     %m: tensor<1x1x4x3xf32>, %g: tensor<1x2x4x6xf32>)
    -> (tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x6xf32>) {
  // CHECK: ltc.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} {causal} : (
  %y:2 = ltc.attention %q, %k, %v mask %m {causal}
      : (tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x6xf32>, tensor<1x1x4x3xf32>)
      -> (tensor<1x2x4x6xf32>, tensor<1x2x4xf32>)
  // CHECK: ltc.attention_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (
  %r:3 = ltc.attention_backward %g, %q, %k, %v, %y#0, %y#1
      : (tensor<1x2x4x6xf32>, tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x6xf32>,
         tensor<1x2x4x6xf32>, tensor<1x2x4xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x6xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x6xf32>
}
