// RUN: ltc-run %s --check
// RUN: ltc-run %s --check --num-threads=2

// Transposes with full and partial tiles, with element widths that aren't
// vectorized, and fused with other ops.
func.func @step(%a0: tensor<100x37xf32>, %a1: tensor<37x100xf32>, %a2: tensor<64x96xf32>, %a3: tensor<32x64xf64>, %a4: tensor<3x40x50xf32>, %a5: tensor<48x48xi8>) -> (tensor<37x100xf32>, tensor<37x100xf32>, tensor<96x64xf32>, tensor<64x32xf64>, tensor<3x50x40xf32>, tensor<50x40x3xf32>, tensor<48x48xi8>) {
  %v2 = tensor.empty() : tensor<37x100xf32>
  %v1 = linalg.transpose ins(%a0 : tensor<100x37xf32>) outs(%v2 : tensor<37x100xf32>) permutation = [1, 0]
  %v4 = tensor.empty() : tensor<37x100xf32>
  %v3 = linalg.transpose ins(%a0 : tensor<100x37xf32>) outs(%v4 : tensor<37x100xf32>) permutation = [1, 0]
  %v6 = tensor.empty() : tensor<37x100xf32>
  %v5 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%v3,%a1 : tensor<37x100xf32>,tensor<37x100xf32>) outs(%v6 : tensor<37x100xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.addf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<37x100xf32>
  %v8 = tensor.empty() : tensor<96x64xf32>
  %v7 = linalg.transpose ins(%a2 : tensor<64x96xf32>) outs(%v8 : tensor<96x64xf32>) permutation = [1, 0]
  %v10 = tensor.empty() : tensor<64x32xf64>
  %v9 = linalg.transpose ins(%a3 : tensor<32x64xf64>) outs(%v10 : tensor<64x32xf64>) permutation = [1, 0]
  %v12 = tensor.empty() : tensor<3x50x40xf32>
  %v11 = linalg.transpose ins(%a4 : tensor<3x40x50xf32>) outs(%v12 : tensor<3x50x40xf32>) permutation = [0, 2, 1]
  %v14 = tensor.empty() : tensor<50x40x3xf32>
  %v13 = linalg.transpose ins(%a4 : tensor<3x40x50xf32>) outs(%v14 : tensor<50x40x3xf32>) permutation = [2, 1, 0]
  %v16 = tensor.empty() : tensor<48x48xi8>
  %v15 = linalg.transpose ins(%a5 : tensor<48x48xi8>) outs(%v16 : tensor<48x48xi8>) permutation = [1, 0]
  return %v1, %v5, %v7, %v9, %v11, %v13, %v15 : tensor<37x100xf32>, tensor<37x100xf32>, tensor<96x64xf32>, tensor<64x32xf64>, tensor<3x50x40xf32>, tensor<50x40x3xf32>, tensor<48x48xi8>
}
