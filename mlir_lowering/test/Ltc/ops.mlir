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

// CHECK-LABEL: func.func @host
func.func @host(%x: tensor<2x9xi8>) -> (tensor<2x3xi8>, tensor<2x3xi64>) {
  // CHECK: ltc.library_call "host"(%{{.*}}) {arguments = [ui8, 3, 1, true, true], op = "aten::topk", results = [ui8, si64]}
  %v:2 = ltc.library_call "host"(%x)
      {op = "aten::topk", arguments = [ui8, 3, 1, true, true], results = [ui8, si64]}
      : (tensor<2x9xi8>) -> (tensor<2x3xi8>, tensor<2x3xi64>)
  return %v#0, %v#1 : tensor<2x3xi8>, tensor<2x3xi64>
}

// CHECK-LABEL: func.func @divisors
func.func @divisors(%x: tensor<3xi8>) -> tensor<3xi8> {
  // CHECK: ltc.check_bounds %{{.*}} in[0, 0) {nonzero} : tensor<3xi8>
  %c = ltc.check_bounds %x in [0, 0) {nonzero} : tensor<3xi8>
  return %c : tensor<3xi8>
}
