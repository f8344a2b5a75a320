// RUN: ltc-run %s | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Results may have no elements, empty sums are 0, and the elements of a
// tensor.empty that is returned are 0.
// CHECK: output 0 [2, 0]:{{$}}
// CHECK: output 1 [2]: 0 0
// CHECK: output 2 [0, 3]:{{$}}
// CHECK: output 3 [2, 2]: 0 0 0 0
// CHECK: output 4 [5, 0]:{{$}}
func.func @step(%x: tensor<2x0xf32>, %y: tensor<0x3xf32>)
    -> (tensor<2x0xf32>, tensor<2xf32>, tensor<0x3xf32>, tensor<2x2xf32>,
        tensor<5x0xf32>) {
  %e = tensor.empty() : tensor<2x0xf32>
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<2x0xf32>) outs(%e : tensor<2x0xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<2x0xf32>
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%er : tensor<2xf32>) -> tensor<2xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<2x0xf32>) outs(%init : tensor<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<2xf32>
  %e2 = tensor.empty() : tensor<0x3xf32>
  %negated = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<0x3xf32>) outs(%e2 : tensor<0x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  } -> tensor<0x3xf32>
  %undefined = tensor.empty() : tensor<2x2xf32>
  %nothing = tensor.empty() : tensor<5x0xf32>
  return %exp, %sum, %negated, %undefined, %nothing
      : tensor<2x0xf32>, tensor<2xf32>, tensor<0x3xf32>, tensor<2x2xf32>,
        tensor<5x0xf32>
}
