// RUN: ltc-run %s --sizes=2 --check --rtol=1e-4 --atol=1e-5
// RUN: ltc-run %s --sizes=9 --check --rtol=1e-4 --atol=1e-5
// RUN: ltc-run %s --sizes=1000 --check --num-threads=2 --rtol=1e-4 --atol=1e-5

// One executable for all batch sizes computes a product, a function of the
// product, and the sums of the columns, whose loop has full steps and a
// remainder.
func.func @step(%x: tensor<$(s0)x64xf32>, %w: tensor<64x32xf32>, %b: tensor<32xf32>) -> (tensor<$(s0)x32xf32>, tensor<32xf32>) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<$(s0)x32xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<$(s0)x32xf32>) -> tensor<$(s0)x32xf32>
  %m = linalg.matmul ins(%x, %w : tensor<$(s0)x64xf32>, tensor<64x32xf32>) outs(%f : tensor<$(s0)x32xf32>) -> tensor<$(s0)x32xf32>
  %r = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%m,%b : tensor<$(s0)x32xf32>,tensor<32xf32>) outs(%e : tensor<$(s0)x32xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %a = arith.addf %i0, %i1 : f32
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<$(s0)x32xf32>
  %e2 = tensor.empty() : tensor<32xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<32xf32>) -> tensor<32xf32>
  %s = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d1)>], iterator_types=["reduction","parallel"]} ins(%r : tensor<$(s0)x32xf32>) outs(%f2 : tensor<32xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %a = arith.addf %o, %i0 : f32
    linalg.yield %a : f32
  } -> tensor<32xf32>
  return %r, %s : tensor<$(s0)x32xf32>, tensor<32xf32>
}
