// RUN: ltc-opt %s --ltc-mlir-schedule-kernels | ltc-opt | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#transposed = affine_map<(i, j) -> (j, i)>

// The two loops are merged, because they are contiguous in memory; each
// iteration is a block of the merged loop.
// CHECK-LABEL: func.func private @elementwise
// CHECK-SAME: torch_ltc.schedule = #ltc.schedule<axes = [<[0, 1] : 65536>], outer = [], split = 0, block = 1024, stored = [0], nests = [<axes = [0], unrolled = [], members = [0]>], iterations = 64, grain = 25>
func.func private @elementwise(%x: tensor<512x128xf32>) -> tensor<512x128xf32> {
  %e = tensor.empty() : tensor<512x128xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<512x128xf32>) outs(%e : tensor<512x128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<512x128xf32>
  return %0 : tensor<512x128xf32>
}

// Each iteration is a row, and code that needs a finished reduction is in a
// separate nest.
// CHECK-LABEL: func.func private @softmax
// CHECK-SAME: torch_ltc.schedule = #ltc.schedule<axes = [<[0] : 512>, <[1] : 128>], outer = [0], stored = [0, 1, 2, 3],
// CHECK-SAME: nests = [<axes = [1], unrolled = [], members = [0]>, <axes = [1], unrolled = [], members = [1, 2]>, <axes = [1], unrolled = [], members = [3]>], iterations = 512, grain = 31>
func.func private @softmax(%x: tensor<512x128xf32>) -> tensor<512x128xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %r = tensor.empty() : tensor<512xf32>
  %m0 = linalg.fill ins(%low : f32) outs(%r : tensor<512xf32>) -> tensor<512xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<512x128xf32>) outs(%m0 : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.maximumf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<512xf32>
  %e = tensor.empty() : tensor<512x128xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<512x128xf32>, tensor<512xf32>) outs(%e : tensor<512x128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %v = math.exp %d : f32
    linalg.yield %v : f32
  } -> tensor<512x128xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%r : tensor<512xf32>) -> tensor<512xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<512x128xf32>) outs(%s0 : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<512xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<512x128xf32>, tensor<512xf32>) outs(%e : tensor<512x128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<512x128xf32>
  return %y : tensor<512x128xf32>
}

// Transposed operands are read in tiles.
// CHECK-LABEL: func.func private @transpose
// CHECK-SAME: split = 1, block = 32, tile = 0, {{.*}}, iterations = 8, grain = 0>
func.func private @transpose(%x: tensor<128x64xf32>) -> tensor<64x128xf32> {
  %e = tensor.empty() : tensor<64x128xf32>
  %0 = linalg.generic {indexing_maps = [#transposed, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<128x64xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}

// For sums of columns, the reduced axis is the outer loop, in memory order.
// CHECK-LABEL: func.func private @columns
// CHECK-SAME: axes = [<[1] : 512>, <[0] : 128>], outer = [], split = 1, block = 64, stored = [0], nests = [<axes = [0, 1], unrolled = [], members = [0]>], iterations = 2, grain = 1>
func.func private @columns(%x: tensor<512x128xf32>) -> tensor<128xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e : tensor<128xf32>) -> tensor<128xf32>
  %sum = linalg.generic {indexing_maps = [#transposed, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<512x128xf32>) outs(%s0 : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<128xf32>
  return %sum : tensor<128xf32>
}

// Neither a kernel without a fusion domain nor the program gets a schedule.
// CHECK-LABEL: func.func private @insertion
// CHECK-NOT: torch_ltc.schedule
func.func private @insertion(%x: tensor<4xf32>, %y: tensor<2xf32>) -> tensor<4xf32> {
  %0 = tensor.insert_slice %y into %x[1] [2] [1] : tensor<2xf32> into tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @step(%x: tensor<4xf32>, %y: tensor<2xf32>) -> tensor<4xf32> {
  %0 = ltc.kernel_call @insertion(%x, %y) : (tensor<4xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
