// RUN: ltc-run %s --sizes=2,3 --check --rtol=1e-4 --atol=1e-5
// RUN: ltc-run %s --sizes=33,130 --check --num-threads=2 --rtol=1e-4 --atol=1e-5

// Softmax and layer norm along rows and along a middle dimension.
func.func @step(%a0: tensor<$(s0)x$(s1)xf32>, %a1: tensor<$(s1)xf32>, %a2: tensor<$(s1)xf32>, %a3: tensor<$(s0)x17x$(s1)xf32>) -> (tensor<$(s0)x$(s1)xf32>, tensor<$(s0)x1xf32>, tensor<$(s0)x1xf32>, tensor<$(s0)x$(s1)xf32>, tensor<$(s0)x17x$(s1)xf32>, tensor<$(s0)x17x$(s1)xf32>) {
  %v3 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<$(s0)xf32>
  %v4 = linalg.fill ins(%v3 : f32) outs(%v2 : tensor<$(s0)xf32>) -> tensor<$(s0)xf32>
  %v1 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0)>], iterator_types=["parallel","reduction"]} ins(%a0 : tensor<$(s0)x$(s1)xf32>) outs(%v4 : tensor<$(s0)xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)xf32>
  %v6 = tensor.empty() : tensor<$(s0)xf32>
  %v5 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%v1 : tensor<$(s0)xf32>) outs(%v6 : tensor<$(s0)xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %c = arith.constant 0.0078125 : f32
    %r = arith.mulf %i0, %c : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)xf32>
  %v8 = tensor.empty() : tensor<$(s0)x1xf32>
  %v7 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%v5 : tensor<$(s0)xf32>) outs(%v8 : tensor<$(s0)x1xf32>) {
  ^bb0(%i0: f32,%o: f32):
    linalg.yield %i0 : f32
  } -> tensor<$(s0)x1xf32>
  %v10 = tensor.empty() : tensor<$(s0)x$(s1)xf32>
  %v9 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,0)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a0,%v7 : tensor<$(s0)x$(s1)xf32>,tensor<$(s0)x1xf32>) outs(%v10 : tensor<$(s0)x$(s1)xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.subf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x$(s1)xf32>
  %v12 = tensor.empty() : tensor<$(s0)x$(s1)xf32>
  %v11 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%v9,%v9 : tensor<$(s0)x$(s1)xf32>,tensor<$(s0)x$(s1)xf32>) outs(%v12 : tensor<$(s0)x$(s1)xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.mulf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x$(s1)xf32>
  %v15 = arith.constant 0.0 : f32
  %v14 = tensor.empty() : tensor<$(s0)xf32>
  %v16 = linalg.fill ins(%v15 : f32) outs(%v14 : tensor<$(s0)xf32>) -> tensor<$(s0)xf32>
  %v13 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0)>], iterator_types=["parallel","reduction"]} ins(%v11 : tensor<$(s0)x$(s1)xf32>) outs(%v16 : tensor<$(s0)xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)xf32>
  %v18 = tensor.empty() : tensor<$(s0)xf32>
  %v17 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%v13 : tensor<$(s0)xf32>) outs(%v18 : tensor<$(s0)xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %c = arith.constant 0.0078125 : f32
    %r = arith.mulf %i0, %c : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)xf32>
  %v20 = tensor.empty() : tensor<$(s0)x1xf32>
  %v19 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%v17 : tensor<$(s0)xf32>) outs(%v20 : tensor<$(s0)x1xf32>) {
  ^bb0(%i0: f32,%o: f32):
    linalg.yield %i0 : f32
  } -> tensor<$(s0)x1xf32>
  %v22 = tensor.empty() : tensor<$(s0)x1xf32>
  %v21 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%v19 : tensor<$(s0)x1xf32>) outs(%v22 : tensor<$(s0)x1xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %c = arith.constant 1.0e-5 : f32
    %r = arith.addf %i0, %c : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x1xf32>
  %v24 = tensor.empty() : tensor<$(s0)x1xf32>
  %v23 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%v21 : tensor<$(s0)x1xf32>) outs(%v24 : tensor<$(s0)x1xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %r = math.rsqrt %i0 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x1xf32>
  %v26 = tensor.empty() : tensor<$(s0)x$(s1)xf32>
  %v25 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,0)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%v9,%v23 : tensor<$(s0)x$(s1)xf32>,tensor<$(s0)x1xf32>) outs(%v26 : tensor<$(s0)x$(s1)xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.mulf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x$(s1)xf32>
  %v28 = tensor.empty() : tensor<$(s0)x$(s1)xf32>
  %v27 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%v25,%a1 : tensor<$(s0)x$(s1)xf32>,tensor<$(s1)xf32>) outs(%v28 : tensor<$(s0)x$(s1)xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.mulf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x$(s1)xf32>
  %v30 = tensor.empty() : tensor<$(s0)x$(s1)xf32>
  %v29 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%v27,%a2 : tensor<$(s0)x$(s1)xf32>,tensor<$(s1)xf32>) outs(%v30 : tensor<$(s0)x$(s1)xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.addf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x$(s1)xf32>
  %v33 = arith.constant 0xFF800000 : f32
  %v32 = tensor.empty() : tensor<$(s0)xf32>
  %v34 = linalg.fill ins(%v33 : f32) outs(%v32 : tensor<$(s0)xf32>) -> tensor<$(s0)xf32>
  %v31 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0)>], iterator_types=["parallel","reduction"]} ins(%a0 : tensor<$(s0)x$(s1)xf32>) outs(%v34 : tensor<$(s0)xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)xf32>
  %v36 = tensor.empty() : tensor<$(s0)x1xf32>
  %v35 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%v31 : tensor<$(s0)xf32>) outs(%v36 : tensor<$(s0)x1xf32>) {
  ^bb0(%i0: f32,%o: f32):
    linalg.yield %i0 : f32
  } -> tensor<$(s0)x1xf32>
  %v38 = tensor.empty() : tensor<$(s0)x$(s1)xf32>
  %v37 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,0)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a0,%v35 : tensor<$(s0)x$(s1)xf32>,tensor<$(s0)x1xf32>) outs(%v38 : tensor<$(s0)x$(s1)xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.subf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x$(s1)xf32>
  %v40 = tensor.empty() : tensor<$(s0)x$(s1)xf32>
  %v39 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%v37 : tensor<$(s0)x$(s1)xf32>) outs(%v40 : tensor<$(s0)x$(s1)xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %r = math.exp %i0 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x$(s1)xf32>
  %v43 = arith.constant 0.0 : f32
  %v42 = tensor.empty() : tensor<$(s0)xf32>
  %v44 = linalg.fill ins(%v43 : f32) outs(%v42 : tensor<$(s0)xf32>) -> tensor<$(s0)xf32>
  %v41 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0)>], iterator_types=["parallel","reduction"]} ins(%v39 : tensor<$(s0)x$(s1)xf32>) outs(%v44 : tensor<$(s0)xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)xf32>
  %v46 = tensor.empty() : tensor<$(s0)x1xf32>
  %v45 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%v41 : tensor<$(s0)xf32>) outs(%v46 : tensor<$(s0)x1xf32>) {
  ^bb0(%i0: f32,%o: f32):
    linalg.yield %i0 : f32
  } -> tensor<$(s0)x1xf32>
  %v48 = tensor.empty() : tensor<$(s0)x$(s1)xf32>
  %v47 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,0)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%v39,%v45 : tensor<$(s0)x$(s1)xf32>,tensor<$(s0)x1xf32>) outs(%v48 : tensor<$(s0)x$(s1)xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x$(s1)xf32>
  %v51 = arith.constant 0xFF800000 : f32
  %v50 = tensor.empty() : tensor<$(s0)x$(s1)xf32>
  %v52 = linalg.fill ins(%v51 : f32) outs(%v50 : tensor<$(s0)x$(s1)xf32>) -> tensor<$(s0)x$(s1)xf32>
  %v49 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d2)>], iterator_types=["parallel","reduction","parallel"]} ins(%a3 : tensor<$(s0)x17x$(s1)xf32>) outs(%v52 : tensor<$(s0)x$(s1)xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x$(s1)xf32>
  %v54 = tensor.empty() : tensor<$(s0)x1x$(s1)xf32>
  %v53 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>], iterator_types=["parallel","parallel","parallel"]} ins(%v49 : tensor<$(s0)x$(s1)xf32>) outs(%v54 : tensor<$(s0)x1x$(s1)xf32>) {
  ^bb0(%i0: f32,%o: f32):
    linalg.yield %i0 : f32
  } -> tensor<$(s0)x1x$(s1)xf32>
  %v56 = tensor.empty() : tensor<$(s0)x17x$(s1)xf32>
  %v55 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,0,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>], iterator_types=["parallel","parallel","parallel"]} ins(%a3,%v53 : tensor<$(s0)x17x$(s1)xf32>,tensor<$(s0)x1x$(s1)xf32>) outs(%v56 : tensor<$(s0)x17x$(s1)xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.subf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x17x$(s1)xf32>
  %v58 = tensor.empty() : tensor<$(s0)x17x$(s1)xf32>
  %v57 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>], iterator_types=["parallel","parallel","parallel"]} ins(%v55 : tensor<$(s0)x17x$(s1)xf32>) outs(%v58 : tensor<$(s0)x17x$(s1)xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %r = math.exp %i0 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x17x$(s1)xf32>
  %v61 = arith.constant 0.0 : f32
  %v60 = tensor.empty() : tensor<$(s0)x$(s1)xf32>
  %v62 = linalg.fill ins(%v61 : f32) outs(%v60 : tensor<$(s0)x$(s1)xf32>) -> tensor<$(s0)x$(s1)xf32>
  %v59 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d2)>], iterator_types=["parallel","reduction","parallel"]} ins(%v57 : tensor<$(s0)x17x$(s1)xf32>) outs(%v62 : tensor<$(s0)x$(s1)xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x$(s1)xf32>
  %v64 = tensor.empty() : tensor<$(s0)x1x$(s1)xf32>
  %v63 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>], iterator_types=["parallel","parallel","parallel"]} ins(%v59 : tensor<$(s0)x$(s1)xf32>) outs(%v64 : tensor<$(s0)x1x$(s1)xf32>) {
  ^bb0(%i0: f32,%o: f32):
    linalg.yield %i0 : f32
  } -> tensor<$(s0)x1x$(s1)xf32>
  %v66 = tensor.empty() : tensor<$(s0)x17x$(s1)xf32>
  %v65 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,0,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>], iterator_types=["parallel","parallel","parallel"]} ins(%v57,%v63 : tensor<$(s0)x17x$(s1)xf32>,tensor<$(s0)x1x$(s1)xf32>) outs(%v66 : tensor<$(s0)x17x$(s1)xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x17x$(s1)xf32>
  %v69 = arith.constant 0xFF800000 : f32
  %v68 = tensor.empty() : tensor<17x$(s1)xf32>
  %v70 = linalg.fill ins(%v69 : f32) outs(%v68 : tensor<17x$(s1)xf32>) -> tensor<17x$(s1)xf32>
  %v67 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d1,d2)>], iterator_types=["reduction","parallel","parallel"]} ins(%a3 : tensor<$(s0)x17x$(s1)xf32>) outs(%v70 : tensor<17x$(s1)xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<17x$(s1)xf32>
  %v72 = tensor.empty() : tensor<1x17x$(s1)xf32>
  %v71 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>], iterator_types=["parallel","parallel","parallel"]} ins(%v67 : tensor<17x$(s1)xf32>) outs(%v72 : tensor<1x17x$(s1)xf32>) {
  ^bb0(%i0: f32,%o: f32):
    linalg.yield %i0 : f32
  } -> tensor<1x17x$(s1)xf32>
  %v74 = tensor.empty() : tensor<$(s0)x17x$(s1)xf32>
  %v73 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>], iterator_types=["parallel","parallel","parallel"]} ins(%a3,%v71 : tensor<$(s0)x17x$(s1)xf32>,tensor<1x17x$(s1)xf32>) outs(%v74 : tensor<$(s0)x17x$(s1)xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.subf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x17x$(s1)xf32>
  %v76 = tensor.empty() : tensor<$(s0)x17x$(s1)xf32>
  %v75 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>], iterator_types=["parallel","parallel","parallel"]} ins(%v73 : tensor<$(s0)x17x$(s1)xf32>) outs(%v76 : tensor<$(s0)x17x$(s1)xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %r = math.exp %i0 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x17x$(s1)xf32>
  %v79 = arith.constant 0.0 : f32
  %v78 = tensor.empty() : tensor<17x$(s1)xf32>
  %v80 = linalg.fill ins(%v79 : f32) outs(%v78 : tensor<17x$(s1)xf32>) -> tensor<17x$(s1)xf32>
  %v77 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d1,d2)>], iterator_types=["reduction","parallel","parallel"]} ins(%v75 : tensor<$(s0)x17x$(s1)xf32>) outs(%v80 : tensor<17x$(s1)xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %o, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<17x$(s1)xf32>
  %v82 = tensor.empty() : tensor<1x17x$(s1)xf32>
  %v81 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>], iterator_types=["parallel","parallel","parallel"]} ins(%v77 : tensor<17x$(s1)xf32>) outs(%v82 : tensor<1x17x$(s1)xf32>) {
  ^bb0(%i0: f32,%o: f32):
    linalg.yield %i0 : f32
  } -> tensor<1x17x$(s1)xf32>
  %v84 = tensor.empty() : tensor<$(s0)x17x$(s1)xf32>
  %v83 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>], iterator_types=["parallel","parallel","parallel"]} ins(%v75,%v81 : tensor<$(s0)x17x$(s1)xf32>,tensor<1x17x$(s1)xf32>) outs(%v84 : tensor<$(s0)x17x$(s1)xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<$(s0)x17x$(s1)xf32>
  return %v29, %v7, %v23, %v47, %v65, %v83 : tensor<$(s0)x$(s1)xf32>, tensor<$(s0)x1xf32>, tensor<$(s0)x1xf32>, tensor<$(s0)x$(s1)xf32>, tensor<$(s0)x17x$(s1)xf32>, tensor<$(s0)x17x$(s1)xf32>
}
