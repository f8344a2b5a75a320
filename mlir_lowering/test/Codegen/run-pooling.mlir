// RUN: ltc-run %s --check
// RUN: ltc-run %s --check --num-threads=2

// Poolings with small windows, which are unrolled inside the loop over an
// output row.
func.func @step(%a0: tensor<4x6x16x20xf32>) -> (tensor<4x6x8x10xf32>, tensor<4x6x8x10xf32>) {
  %v2 = arith.constant 0xFF800000 : f32
  %v1 = tensor.empty() : tensor<4x6x8x10xf32>
  %v3 = linalg.fill ins(%v2 : f32) outs(%v1 : tensor<4x6x8x10xf32>) -> tensor<4x6x8x10xf32>
  %v4 = tensor.empty() : tensor<2x2xf32>
  %v5 = linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%a0, %v4 : tensor<4x6x16x20xf32>, tensor<2x2xf32>) outs(%v3 : tensor<4x6x8x10xf32>) -> tensor<4x6x8x10xf32>
  %v7 = tensor.empty() : tensor<4x6x8x10xf32>
  %v6 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>], iterator_types=["parallel","parallel","parallel","parallel"]} ins(%v5 : tensor<4x6x8x10xf32>) outs(%v7 : tensor<4x6x8x10xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %c = arith.constant 0.0 : f32
    %r = arith.maximumf %i0, %c : f32
    linalg.yield %r : f32
  } -> tensor<4x6x8x10xf32>
  return %v5, %v6 : tensor<4x6x8x10xf32>, tensor<4x6x8x10xf32>
}
