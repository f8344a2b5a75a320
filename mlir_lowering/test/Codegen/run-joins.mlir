// RUN: ltc-run %s --check
// RUN: ltc-run %s --check --num-threads=2
// RUN: ltc-run %s --print-stage=kernels | FileCheck %s

// Three steps of a recurrent network with gradients of its weights. The parts
// of the joins are values that are computed in place, a value that two joins
// use, an output, a constant, and slices of a parameter.
// CHECK: tensor.extract_slice
// CHECK-COUNT-2: ltc.join
// CHECK-NOT: ltc.join

#id = affine_map<(i, j) -> (i, j)>
#a = affine_map<(i, j, k) -> (i, k)>
#at = affine_map<(i, j, k) -> (k, i)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

func.func @step(%x: tensor<3x4x8xf32>, %wx: tensor<8x16xf32>, %wh: tensor<16x16xf32>)
    -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<16x16xf32>, tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %h0 = arith.constant dense<0.5> : tensor<4x16xf32>
  %e = tensor.empty() : tensor<4x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %ewh = tensor.empty() : tensor<16x16xf32>
  %zwh = linalg.fill ins(%zero : f32) outs(%ewh : tensor<16x16xf32>) -> tensor<16x16xf32>
  %ewx = tensor.empty() : tensor<16x8xf32>
  %zwx = linalg.fill ins(%zero : f32) outs(%ewx : tensor<16x8xf32>) -> tensor<16x8xf32>
  %x0 = tensor.extract_slice %x[0, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<3x4x8xf32> to tensor<4x8xf32>
  %i0 = linalg.matmul ins(%x0, %wx : tensor<4x8xf32>, tensor<8x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
  %r0 = linalg.matmul ins(%h0, %wh : tensor<4x16xf32>, tensor<16x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
  %h1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i0, %r0 : tensor<4x16xf32>, tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    %y = math.tanh %s : f32
    linalg.yield %y : f32
  } -> tensor<4x16xf32>
  %g0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h1, %r0 : tensor<4x16xf32>, tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  %dwh0 = linalg.matmul indexing_maps = [#at, #b, #c] ins(%h0, %g0 : tensor<4x16xf32>, tensor<4x16xf32>) outs(%zwh : tensor<16x16xf32>) -> tensor<16x16xf32>
  %dwx0 = linalg.matmul indexing_maps = [#at, #b, #c] ins(%g0, %x0 : tensor<4x16xf32>, tensor<4x8xf32>) outs(%zwx : tensor<16x8xf32>) -> tensor<16x8xf32>
  %x1 = tensor.extract_slice %x[1, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<3x4x8xf32> to tensor<4x8xf32>
  %i1 = linalg.matmul ins(%x1, %wx : tensor<4x8xf32>, tensor<8x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
  %r1 = linalg.matmul ins(%h1, %wh : tensor<4x16xf32>, tensor<16x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
  %h2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i1, %r1 : tensor<4x16xf32>, tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    %y = math.tanh %s : f32
    linalg.yield %y : f32
  } -> tensor<4x16xf32>
  %g1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h2, %r1 : tensor<4x16xf32>, tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  %dwh1 = linalg.matmul indexing_maps = [#at, #b, #c] ins(%h1, %g1 : tensor<4x16xf32>, tensor<4x16xf32>) outs(%zwh : tensor<16x16xf32>) -> tensor<16x16xf32>
  %dwx1 = linalg.matmul indexing_maps = [#at, #b, #c] ins(%g1, %x1 : tensor<4x16xf32>, tensor<4x8xf32>) outs(%zwx : tensor<16x8xf32>) -> tensor<16x8xf32>
  %x2 = tensor.extract_slice %x[2, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<3x4x8xf32> to tensor<4x8xf32>
  %i2 = linalg.matmul ins(%x2, %wx : tensor<4x8xf32>, tensor<8x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
  %r2 = linalg.matmul ins(%h2, %wh : tensor<4x16xf32>, tensor<16x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
  %h3 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i2, %r2 : tensor<4x16xf32>, tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    %y = math.tanh %s : f32
    linalg.yield %y : f32
  } -> tensor<4x16xf32>
  %g2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h3, %r2 : tensor<4x16xf32>, tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  %dwh2 = linalg.matmul indexing_maps = [#at, #b, #c] ins(%h2, %g2 : tensor<4x16xf32>, tensor<4x16xf32>) outs(%zwh : tensor<16x16xf32>) -> tensor<16x16xf32>
  %dwx2 = linalg.matmul indexing_maps = [#at, #b, #c] ins(%g2, %x2 : tensor<4x16xf32>, tensor<4x8xf32>) outs(%zwx : tensor<16x8xf32>) -> tensor<16x8xf32>
  %swh = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dwh2, %dwh1 : tensor<16x16xf32>, tensor<16x16xf32>) outs(%ewh : tensor<16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<16x16xf32>
  %dwh = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%swh, %dwh0 : tensor<16x16xf32>, tensor<16x16xf32>) outs(%ewh : tensor<16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<16x16xf32>
  %swx = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dwx2, %dwx1 : tensor<16x8xf32>, tensor<16x8xf32>) outs(%ewx : tensor<16x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<16x8xf32>
  %dwx = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%swx, %dwx0 : tensor<16x8xf32>, tensor<16x8xf32>) outs(%ewx : tensor<16x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<16x8xf32>
  return %h3, %h1, %dwh, %dwx : tensor<4x16xf32>, tensor<4x16xf32>, tensor<16x16xf32>, tensor<16x8xf32>
}
