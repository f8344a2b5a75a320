// RUN: ltc-run %s --check --rtol=1e-4 --atol=1e-4
// RUN: ltc-run %s --check --num-threads=2 --rtol=1e-4 --atol=1e-4

// Reductions of rows, columns, channels and all elements, including odd sizes.
func.func @step(%a0: tensor<512x96xf32>, %a1: tensor<3x5x7xf32>, %a2: tensor<40x6x14x14xf32>, %a3: tensor<70000xf32>) -> (tensor<512xf32>, tensor<96xf32>, tensor<f32>, tensor<96xf32>, tensor<5x7xf32>, tensor<3x7xf32>, tensor<3x5xf32>, tensor<5xf32>, tensor<6xf32>, tensor<40x14x14xf32>, tensor<f32>, tensor<512xf32>) {
  %v3 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<512xf32>
  %v4 = linalg.fill ins(%v3 : f32) outs(%v2 : tensor<512xf32>) -> tensor<512xf32>
  %v1 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0)>], iterator_types=["parallel","reduction"]} ins(%a0 : tensor<512x96xf32>) outs(%v4 : tensor<512xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<512xf32>
  %v7 = arith.constant 0.0 : f32
  %v6 = tensor.empty() : tensor<96xf32>
  %v8 = linalg.fill ins(%v7 : f32) outs(%v6 : tensor<96xf32>) -> tensor<96xf32>
  %v5 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d1)>], iterator_types=["reduction","parallel"]} ins(%a0 : tensor<512x96xf32>) outs(%v8 : tensor<96xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<96xf32>
  %v11 = arith.constant 0.0 : f32
  %v10 = tensor.empty() : tensor<f32>
  %v12 = linalg.fill ins(%v11 : f32) outs(%v10 : tensor<f32>) -> tensor<f32>
  %v9 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->()>], iterator_types=["reduction","reduction"]} ins(%a0 : tensor<512x96xf32>) outs(%v12 : tensor<f32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %v15 = arith.constant 0xFF800000 : f32
  %v14 = tensor.empty() : tensor<96xf32>
  %v16 = linalg.fill ins(%v15 : f32) outs(%v14 : tensor<96xf32>) -> tensor<96xf32>
  %v13 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d1)>], iterator_types=["reduction","parallel"]} ins(%a0 : tensor<512x96xf32>) outs(%v16 : tensor<96xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<96xf32>
  %v19 = arith.constant 0.0 : f32
  %v18 = tensor.empty() : tensor<5x7xf32>
  %v20 = linalg.fill ins(%v19 : f32) outs(%v18 : tensor<5x7xf32>) -> tensor<5x7xf32>
  %v17 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d1,d2)>], iterator_types=["reduction","parallel","parallel"]} ins(%a1 : tensor<3x5x7xf32>) outs(%v20 : tensor<5x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<5x7xf32>
  %v23 = arith.constant 0.0 : f32
  %v22 = tensor.empty() : tensor<3x7xf32>
  %v24 = linalg.fill ins(%v23 : f32) outs(%v22 : tensor<3x7xf32>) -> tensor<3x7xf32>
  %v21 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d2)>], iterator_types=["parallel","reduction","parallel"]} ins(%a1 : tensor<3x5x7xf32>) outs(%v24 : tensor<3x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<3x7xf32>
  %v27 = arith.constant 0.0 : f32
  %v26 = tensor.empty() : tensor<3x5xf32>
  %v28 = linalg.fill ins(%v27 : f32) outs(%v26 : tensor<3x5xf32>) -> tensor<3x5xf32>
  %v25 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1)>], iterator_types=["parallel","parallel","reduction"]} ins(%a1 : tensor<3x5x7xf32>) outs(%v28 : tensor<3x5xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<3x5xf32>
  %v31 = arith.constant 0.0 : f32
  %v30 = tensor.empty() : tensor<5xf32>
  %v32 = linalg.fill ins(%v31 : f32) outs(%v30 : tensor<5xf32>) -> tensor<5xf32>
  %v29 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d1)>], iterator_types=["reduction","parallel","reduction"]} ins(%a1 : tensor<3x5x7xf32>) outs(%v32 : tensor<5xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<5xf32>
  %v35 = arith.constant 0.0 : f32
  %v34 = tensor.empty() : tensor<6xf32>
  %v36 = linalg.fill ins(%v35 : f32) outs(%v34 : tensor<6xf32>) -> tensor<6xf32>
  %v33 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>,affine_map<(d0,d1,d2,d3)->(d1)>], iterator_types=["reduction","parallel","reduction","reduction"]} ins(%a2 : tensor<40x6x14x14xf32>) outs(%v36 : tensor<6xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<6xf32>
  %v39 = arith.constant 0.0 : f32
  %v38 = tensor.empty() : tensor<40x14x14xf32>
  %v40 = linalg.fill ins(%v39 : f32) outs(%v38 : tensor<40x14x14xf32>) -> tensor<40x14x14xf32>
  %v37 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>,affine_map<(d0,d1,d2,d3)->(d0,d2,d3)>], iterator_types=["parallel","reduction","parallel","parallel"]} ins(%a2 : tensor<40x6x14x14xf32>) outs(%v40 : tensor<40x14x14xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<40x14x14xf32>
  %v42 = tensor.empty() : tensor<70000xf32>
  %v41 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%a3,%a3 : tensor<70000xf32>,tensor<70000xf32>) outs(%v42 : tensor<70000xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.mulf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<70000xf32>
  %v45 = arith.constant 0.0 : f32
  %v44 = tensor.empty() : tensor<f32>
  %v46 = linalg.fill ins(%v45 : f32) outs(%v44 : tensor<f32>) -> tensor<f32>
  %v43 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->()>], iterator_types=["reduction"]} ins(%v41 : tensor<70000xf32>) outs(%v46 : tensor<f32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %v49 = arith.constant 1.0 : f32
  %v48 = tensor.empty() : tensor<512xf32>
  %v50 = linalg.fill ins(%v49 : f32) outs(%v48 : tensor<512xf32>) -> tensor<512xf32>
  %v47 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0)>], iterator_types=["parallel","reduction"]} ins(%a0 : tensor<512x96xf32>) outs(%v50 : tensor<512xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.mulf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<512xf32>
  return %v1, %v5, %v9, %v13, %v17, %v21, %v25, %v29, %v33, %v37, %v43, %v47 : tensor<512xf32>, tensor<96xf32>, tensor<f32>, tensor<96xf32>, tensor<5x7xf32>, tensor<3x7xf32>, tensor<3x5xf32>, tensor<5xf32>, tensor<6xf32>, tensor<40x14x14xf32>, tensor<f32>, tensor<512xf32>
}
