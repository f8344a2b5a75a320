// RUN: ltc-run %s --check
// RUN: ltc-run %s --check --num-threads=2
// RUN: ltc-run %s --print-statistics | FileCheck %s
// CHECK: kernels 1, commands 1
// CHECK: arena 0 bytes
// CHECK: output 0 [5000] donated 0
// CHECK: output 1 [5000] donated 1
// CHECK: output 2 [5000] donated 2

// One kernel updates AdamW's parameter and moments in place.
func.func @step(%a0: tensor<5000xf32> {torch_ltc.donatable}, %a1: tensor<5000xf32> {torch_ltc.donatable}, %a2: tensor<5000xf32> {torch_ltc.donatable, run.range=[0.0,1.0]}, %a3: tensor<5000xf32>, %a4: f64 {run.value = 1.0e-3 : f64}) -> (tensor<5000xf32>, tensor<5000xf32>, tensor<5000xf32>) {
  %v2 = tensor.empty() : tensor<5000xf32>
  %v1 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%a1 : tensor<5000xf32>) outs(%v2 : tensor<5000xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %c = arith.constant 0.9 : f32
    %r = arith.mulf %i0, %c : f32
    linalg.yield %r : f32
  } -> tensor<5000xf32>
  %v4 = tensor.empty() : tensor<5000xf32>
  %v3 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%a3 : tensor<5000xf32>) outs(%v4 : tensor<5000xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %c = arith.constant 0.1 : f32
    %r = arith.mulf %i0, %c : f32
    linalg.yield %r : f32
  } -> tensor<5000xf32>
  %v6 = tensor.empty() : tensor<5000xf32>
  %v5 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%v1,%v3 : tensor<5000xf32>,tensor<5000xf32>) outs(%v6 : tensor<5000xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.addf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<5000xf32>
  %v8 = tensor.empty() : tensor<5000xf32>
  %v7 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%a2 : tensor<5000xf32>) outs(%v8 : tensor<5000xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %c = arith.constant 0.999 : f32
    %r = arith.mulf %i0, %c : f32
    linalg.yield %r : f32
  } -> tensor<5000xf32>
  %v10 = tensor.empty() : tensor<5000xf32>
  %v9 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%a3,%a3 : tensor<5000xf32>,tensor<5000xf32>) outs(%v10 : tensor<5000xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.mulf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<5000xf32>
  %v12 = tensor.empty() : tensor<5000xf32>
  %v11 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%v9 : tensor<5000xf32>) outs(%v12 : tensor<5000xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %c = arith.constant 0.001 : f32
    %r = arith.mulf %i0, %c : f32
    linalg.yield %r : f32
  } -> tensor<5000xf32>
  %v14 = tensor.empty() : tensor<5000xf32>
  %v13 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%v7,%v11 : tensor<5000xf32>,tensor<5000xf32>) outs(%v14 : tensor<5000xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.addf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<5000xf32>
  %v16 = tensor.empty() : tensor<5000xf32>
  %v15 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%v13 : tensor<5000xf32>) outs(%v16 : tensor<5000xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %r = math.sqrt %i0 : f32
    linalg.yield %r : f32
  } -> tensor<5000xf32>
  %v18 = tensor.empty() : tensor<5000xf32>
  %v17 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%v15 : tensor<5000xf32>) outs(%v18 : tensor<5000xf32>) {
  ^bb0(%i0: f32,%o: f32):
    %c = arith.constant 1.0e-8 : f32
    %r = arith.addf %i0, %c : f32
    linalg.yield %r : f32
  } -> tensor<5000xf32>
  %v20 = tensor.empty() : tensor<5000xf32>
  %v19 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%v5,%v17 : tensor<5000xf32>,tensor<5000xf32>) outs(%v20 : tensor<5000xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<5000xf32>
  %lr32 = arith.truncf %a4 : f64 to f32
  %v22 = tensor.empty() : tensor<5000xf32>
  %v21 = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%a0,%v19 : tensor<5000xf32>,tensor<5000xf32>) outs(%v22 : tensor<5000xf32>) {
  ^bb0(%i0: f32,%i1: f32,%o: f32):
    %q = arith.mulf %i1, %lr32 : f32
    %r = arith.subf %i0, %q : f32
    linalg.yield %r : f32
  } -> tensor<5000xf32>
  return %v21, %v5, %v13 : tensor<5000xf32>, tensor<5000xf32>, tensor<5000xf32>
}
