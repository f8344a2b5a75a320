// RUN: ltc-run %s | FileCheck %s
// RUN: ltc-run %s --check

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#none = affine_map<(i, j) -> ()>
#one = affine_map<(i) -> (i)>

// CHECK: output 0 [2, 2]: 1 2 4 5
// CHECK: output 1 []: 91
// CHECK: output 2 [2]: 3 6
// CHECK: output 3 [3]: 1 2.71828 7.38906
func.func @corners(%x: tensor<2x3xf32> {run.value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>},
                   %wide: tensor<3xf64> {run.value = dense<[0.0, 1.0, 2.0]> : tensor<3xf64>})
    -> (tensor<2x2xf32>, tensor<f32>, tensor<2xf32>, tensor<3xf64>) {
  // Leading columns.
  %left = tensor.extract_slice %x[0, 0] [2, 2] [1, 1] : tensor<2x3xf32> to tensor<2x2xf32>
  // A reduction of all elements to rank 0, and a copy of its result.
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<f32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %squares = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<2x3xf32>) outs(%z0 : tensor<f32>) {
    ^bb0(%a: f32, %acc: f32):
      %aa = arith.mulf %a, %a : f32
      %sum = arith.addf %acc, %aa : f32
      linalg.yield %sum : f32
  } -> tensor<f32>
  %ranked = tensor.expand_shape %squares [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32>
  %e11 = tensor.empty() : tensor<1x1xf32>
  %copied = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%ranked : tensor<1x1xf32>) outs(%e11 : tensor<1x1xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
  } -> tensor<1x1xf32>
  %norm = tensor.collapse_shape %copied [] : tensor<1x1xf32> into tensor<f32>
  // A sum over one element.
  %last = tensor.extract_slice %x[0, 2] [2, 1] [1, 1] : tensor<2x3xf32> to tensor<2x1xf32>
  %e2 = tensor.empty() : tensor<2xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2xf32>) -> tensor<2xf32>
  %sums = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%last : tensor<2x1xf32>) outs(%z2 : tensor<2xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %sum = arith.addf %acc, %a : f32
      linalg.yield %sum : f32
  } -> tensor<2xf32>
  // A math function on doubles.
  %e3 = tensor.empty() : tensor<3xf64>
  %exp = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%wide : tensor<3xf64>) outs(%e3 : tensor<3xf64>) {
    ^bb0(%a: f64, %o: f64):
      %y = math.exp %a : f64
      linalg.yield %y : f64
  } -> tensor<3xf64>
  return %left, %norm, %sums, %exp : tensor<2x2xf32>, tensor<f32>, tensor<2xf32>, tensor<3xf64>
}
