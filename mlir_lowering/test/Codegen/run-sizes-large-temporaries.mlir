// A general executable can be loaded even if its temporaries exceed the address
// space at the stand-ins: attention's scores take 10^14 bytes there.
// RUN: ltc-run %s --sizes=2,3 --check
// RUN: ltc-run %s --sizes=3,65 --check
// RUN: ltc-run %s --sizes=5,128 --check --num-threads=2
// RUN: ltc-run %s --sizes=5,0 | FileCheck %s
// CHECK: output 0 [60, 0]

#all = affine_map<(b, i, j) -> (b, i, j)>
#row = affine_map<(b, i, j) -> (b, i)>

func.func @scores(%q: tensor<$(12*s0)x$(s1)x4xf32>, %k: tensor<$(12*s0)x4x$(s1)xf32>)
    -> (tensor<$(12*s0)x$(s1)xf32>, tensor<$(12*s0)x$(s1)x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<$(12*s0)x$(s1)x$(s1)xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<$(12*s0)x$(s1)x$(s1)xf32>) -> tensor<$(12*s0)x$(s1)x$(s1)xf32>
  %scores = linalg.batch_matmul ins(%q, %k : tensor<$(12*s0)x$(s1)x4xf32>, tensor<$(12*s0)x4x$(s1)xf32>)
      outs(%z : tensor<$(12*s0)x$(s1)x$(s1)xf32>) -> tensor<$(12*s0)x$(s1)x$(s1)xf32>
  %exponentials = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores : tensor<$(12*s0)x$(s1)x$(s1)xf32>) outs(%e : tensor<$(12*s0)x$(s1)x$(s1)xf32>) {
    ^bb0(%a: f32, %o: f32):
      %x = math.exp %a : f32
      linalg.yield %x : f32
  } -> tensor<$(12*s0)x$(s1)x$(s1)xf32>
  %er = tensor.empty() : tensor<$(12*s0)x$(s1)xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<$(12*s0)x$(s1)xf32>) -> tensor<$(12*s0)x$(s1)xf32>
  %sums = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%exponentials : tensor<$(12*s0)x$(s1)x$(s1)xf32>) outs(%zr : tensor<$(12*s0)x$(s1)xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %s = arith.addf %sum, %a : f32
      linalg.yield %s : f32
  } -> tensor<$(12*s0)x$(s1)xf32>
  %ev = tensor.empty() : tensor<$(12*s0)x$(s1)x4xf32>
  %zv = linalg.fill ins(%zero : f32) outs(%ev : tensor<$(12*s0)x$(s1)x4xf32>) -> tensor<$(12*s0)x$(s1)x4xf32>
  %values = linalg.batch_matmul ins(%exponentials, %q : tensor<$(12*s0)x$(s1)x$(s1)xf32>, tensor<$(12*s0)x$(s1)x4xf32>)
      outs(%zv : tensor<$(12*s0)x$(s1)x4xf32>) -> tensor<$(12*s0)x$(s1)x4xf32>
  return %sums, %values : tensor<$(12*s0)x$(s1)xf32>, tensor<$(12*s0)x$(s1)x4xf32>
}
