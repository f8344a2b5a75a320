// RUN: ltc-run %s --check
// RUN: ltc-run %s --check --num-threads=2

// Runs ops of each element type, and reductions of integers and bools.
func.func @step(%a0: tensor<33x65xf64>, %a1: tensor<33x65xi64>, %a2: tensor<33x65xi32>, %a3: tensor<33x65xbf16>, %a4: tensor<33x65xi1>, %a5: tensor<33x65xf16>) -> (tensor<33x65xf64>, tensor<33x65xf64>, tensor<33x65xf64>, tensor<33x65xi64>, tensor<33x65xi64>, tensor<33x65xi32>, tensor<33x65xi1>, tensor<33x65xbf16>, tensor<33x65xbf16>, tensor<33x65xf16>, tensor<33x65xi1>, tensor<33x65xf64>, tensor<33x65xbf16>, tensor<33x65xi64>, tensor<33x65xf32>, tensor<65xi64>, tensor<33xi1>, tensor<65xf64>) {
  %v2 = tensor.empty() : tensor<33x65xf64>
  %v1 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a0 : tensor<33x65xf64>) outs(%v2 : tensor<33x65xf64>) {
  ^bb0(%i0: f64,%o: f64):
    %r = math.exp %i0 : f64
    linalg.yield %r : f64
  } -> tensor<33x65xf64>
  %v4 = tensor.empty() : tensor<33x65xf64>
  %v3 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a0 : tensor<33x65xf64>) outs(%v4 : tensor<33x65xf64>) {
  ^bb0(%i0: f64,%o: f64):
    %r = math.sin %i0 : f64
    linalg.yield %r : f64
  } -> tensor<33x65xf64>
  %v6 = tensor.empty() : tensor<33x65xf64>
  %v5 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a0 : tensor<33x65xf64>) outs(%v6 : tensor<33x65xf64>) {
  ^bb0(%i0: f64,%o: f64):
    %r = math.tanh %i0 : f64
    linalg.yield %r : f64
  } -> tensor<33x65xf64>
  %v8 = tensor.empty() : tensor<33x65xi64>
  %v7 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a1 : tensor<33x65xi64>) outs(%v8 : tensor<33x65xi64>) {
  ^bb0(%i0: i64,%o: i64):
    %c = arith.constant 7 : i64
    %r = arith.divsi %i0, %c : i64
    linalg.yield %r : i64
  } -> tensor<33x65xi64>
  %v10 = tensor.empty() : tensor<33x65xi64>
  %v9 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a1,%a1 : tensor<33x65xi64>,tensor<33x65xi64>) outs(%v10 : tensor<33x65xi64>) {
  ^bb0(%i0: i64,%i1: i64,%o: i64):
    %r = arith.remsi %i0, %i1 : i64
    linalg.yield %r : i64
  } -> tensor<33x65xi64>
  %v12 = tensor.empty() : tensor<33x65xi32>
  %v11 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a2,%a2 : tensor<33x65xi32>,tensor<33x65xi32>) outs(%v12 : tensor<33x65xi32>) {
  ^bb0(%i0: i32,%i1: i32,%o: i32):
    %r = arith.muli %i0, %i1 : i32
    linalg.yield %r : i32
  } -> tensor<33x65xi32>
  %v14 = tensor.empty() : tensor<33x65xi1>
  %v13 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a4,%a4 : tensor<33x65xi1>,tensor<33x65xi1>) outs(%v14 : tensor<33x65xi1>) {
  ^bb0(%i0: i1,%i1: i1,%o: i1):
    %r = arith.xori %i0, %i1 : i1
    linalg.yield %r : i1
  } -> tensor<33x65xi1>
  %v16 = tensor.empty() : tensor<33x65xbf16>
  %v15 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a3 : tensor<33x65xbf16>) outs(%v16 : tensor<33x65xbf16>) {
  ^bb0(%i0: bf16,%o: bf16):
    %r = math.exp %i0 : bf16
    linalg.yield %r : bf16
  } -> tensor<33x65xbf16>
  %v18 = tensor.empty() : tensor<33x65xbf16>
  %v17 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a3,%a3 : tensor<33x65xbf16>,tensor<33x65xbf16>) outs(%v18 : tensor<33x65xbf16>) {
  ^bb0(%i0: bf16,%i1: bf16,%o: bf16):
    %r = arith.mulf %i0, %i1 : bf16
    linalg.yield %r : bf16
  } -> tensor<33x65xbf16>
  %v20 = tensor.empty() : tensor<33x65xf16>
  %v19 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a5,%a5 : tensor<33x65xf16>,tensor<33x65xf16>) outs(%v20 : tensor<33x65xf16>) {
  ^bb0(%i0: f16,%i1: f16,%o: f16):
    %r = arith.addf %i0, %i1 : f16
    linalg.yield %r : f16
  } -> tensor<33x65xf16>
  %v22 = tensor.empty() : tensor<33x65xi1>
  %v21 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a0 : tensor<33x65xf64>) outs(%v22 : tensor<33x65xi1>) {
  ^bb0(%i0: f64,%o: i1):
    %z = arith.constant 0.1 : f64
    %r = arith.cmpf ogt, %i0, %z : f64
    linalg.yield %r : i1
  } -> tensor<33x65xi1>
  %v24 = tensor.empty() : tensor<33x65xf64>
  %v23 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a4,%a0 : tensor<33x65xi1>,tensor<33x65xf64>) outs(%v24 : tensor<33x65xf64>) {
  ^bb0(%i0: i1,%i1: f64,%o: f64):
    %z = arith.constant 2.5 : f64
    %r = arith.select %i0, %i1, %z : f64
    linalg.yield %r : f64
  } -> tensor<33x65xf64>
  %v26 = tensor.empty() : tensor<33x65xbf16>
  %v25 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a3 : tensor<33x65xbf16>) outs(%v26 : tensor<33x65xbf16>) {
  ^bb0(%i0: bf16,%o: bf16):
    %r = arith.extf %i0 : bf16 to f32
    %s = math.sqrt %r : f32
    %t = arith.truncf %s : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<33x65xbf16>
  %v28 = tensor.empty() : tensor<33x65xi64>
  %v27 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a0 : tensor<33x65xf64>) outs(%v28 : tensor<33x65xi64>) {
  ^bb0(%i0: f64,%o: i64):
    %r = arith.fptosi %i0 : f64 to i64
    linalg.yield %r : i64
  } -> tensor<33x65xi64>
  %v30 = tensor.empty() : tensor<33x65xf32>
  %v29 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0,d1)>], iterator_types=["parallel","parallel"]} ins(%a1 : tensor<33x65xi64>) outs(%v30 : tensor<33x65xf32>) {
  ^bb0(%i0: i64,%o: f32):
    %r = arith.sitofp %i0 : i64 to f32
    linalg.yield %r : f32
  } -> tensor<33x65xf32>
  %v33 = arith.constant 0 : i64
  %v32 = tensor.empty() : tensor<65xi64>
  %v34 = linalg.fill ins(%v33 : i64) outs(%v32 : tensor<65xi64>) -> tensor<65xi64>
  %v31 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d1)>], iterator_types=["reduction","parallel"]} ins(%a1 : tensor<33x65xi64>) outs(%v34 : tensor<65xi64>) {
  ^bb0(%i0: i64, %o: i64):
    %r = arith.addi %o, %i0 : i64
    linalg.yield %r : i64
  } -> tensor<65xi64>
  %v37 = arith.constant 0 : i1
  %v36 = tensor.empty() : tensor<33xi1>
  %v38 = linalg.fill ins(%v37 : i1) outs(%v36 : tensor<33xi1>) -> tensor<33xi1>
  %v35 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d0)>], iterator_types=["parallel","reduction"]} ins(%a4 : tensor<33x65xi1>) outs(%v38 : tensor<33xi1>) {
  ^bb0(%i0: i1, %o: i1):
    %r = arith.ori %o, %i0 : i1
    linalg.yield %r : i1
  } -> tensor<33xi1>
  %v41 = arith.constant 0.0 : f64
  %v40 = tensor.empty() : tensor<65xf64>
  %v42 = linalg.fill ins(%v41 : f64) outs(%v40 : tensor<65xf64>) -> tensor<65xf64>
  %v39 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->(d1)>], iterator_types=["reduction","parallel"]} ins(%a0 : tensor<33x65xf64>) outs(%v42 : tensor<65xf64>) {
  ^bb0(%i0: f64, %o: f64):
    %r = arith.addf %o, %i0 : f64
    linalg.yield %r : f64
  } -> tensor<65xf64>
  return %v1, %v3, %v5, %v7, %v9, %v11, %v13, %v15, %v17, %v19, %v21, %v23, %v25, %v27, %v29, %v31, %v35, %v39 : tensor<33x65xf64>, tensor<33x65xf64>, tensor<33x65xf64>, tensor<33x65xi64>, tensor<33x65xi64>, tensor<33x65xi32>, tensor<33x65xi1>, tensor<33x65xbf16>, tensor<33x65xbf16>, tensor<33x65xf16>, tensor<33x65xi1>, tensor<33x65xf64>, tensor<33x65xbf16>, tensor<33x65xi64>, tensor<33x65xf32>, tensor<65xi64>, tensor<33xi1>, tensor<65xf64>
}
