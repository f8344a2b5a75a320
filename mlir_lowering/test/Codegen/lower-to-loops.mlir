// RUN: ltc-opt %s --ltc-mlir-lower-to-loops --split-input-file --verify-diagnostics | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>

// Each iteration computes a row, as the schedule specifies; the vector loop is
// inside. A result that overwrites an operand is stored in its buffer.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[X:.+]]: memref<8192xf32> {llvm.noalias}, %{{.+}}: memref<8192xf32> {llvm.noalias}, %[[BEGIN:.+]]: index, %[[END:.+]]: index)
// CHECK: scf.for %{{.+}} = %[[BEGIN]] to %[[END]]
// CHECK: scf.for
// CHECK: memref.load %[[X]]
// CHECK: arith.negf
// CHECK: memref.store %{{.+}}, %[[X]]
func.func private @rows(%x: tensor<64x128xf32>) -> tensor<64x128xf32> attributes {
    torch_ltc.aliases = array<i64: 0>,
    torch_ltc.schedule = #ltc.schedule<axes = [<[0] : 64>, <[1] : 128>], outer = [0], split = 1, block = 128, stored = [0],
      nests = [<axes = [1], unrolled = [], members = [0]>], iterations = 64, grain = 0>} {
  %e = tensor.empty() : tensor<64x128xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.negf %a : f32
    linalg.yield %v : f32
  } -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> ()>

// A long sum has a loop over blocks, which adds in f64: blocks of 4096 terms in
// the vector loop, and of 64 terms in other loops.
// CHECK-LABEL: func.func @long_sum
// CHECK: %[[ROWS:.+]] = arith.constant 64 : index
// CHECK: scf.for {{.+}} step %[[ROWS]] iter_args(%[[TOTAL:.+]] = %{{.+}}) -> (f64)
// CHECK:   %[[SUM:.+]] = scf.for {{.+}} -> (f32)
// CHECK:     %[[BLOCK:.+]] = arith.constant 4096 : index
// CHECK:     scf.for {{.+}} step %[[BLOCK]] {{.+}} -> (f64)
// CHECK:       scf.for {{.+}} -> (f32)
// CHECK:         arith.addf {{.+}} fastmath<reassoc> : f32
// CHECK:       arith.addf {{.+}} : f64
// CHECK:   %[[TERM:.+]] = arith.extf %[[SUM]]
// CHECK:   arith.addf %[[TOTAL]], %[[TERM]] : f64
// CHECK-NOT: scf.for
func.func private @long_sum(%x: tensor<128x8192xf32>) -> tensor<f32> attributes {
    torch_ltc.schedule = #ltc.schedule<axes = [<[0] : 128>, <[1] : 8192>], outer = [], stored = [0],
      nests = [<axes = [0, 1], unrolled = [], members = [0]>], iterations = 1, grain = 0>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#id, #one], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<128x8192xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// A short one doesn't.
// CHECK-LABEL: func.func @short_sum
// CHECK-NOT: f64
func.func private @short_sum(%x: tensor<64x4096xf32>) -> tensor<f32> attributes {
    torch_ltc.schedule = #ltc.schedule<axes = [<[0] : 64>, <[1] : 4096>], outer = [], stored = [0],
      nests = [<axes = [0, 1], unrolled = [], members = [0]>], iterations = 1, grain = 0>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#id, #one], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<64x4096xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// In a kernel for all sizes, only the axes that vary have blocks, because a
// stand-in doesn't show how many terms there are.
// CHECK-LABEL: func.func @sum_for_all_sizes
// CHECK:   scf.for {{.+}} -> (f32)
// CHECK:     %[[BLOCK:.+]] = arith.constant 4096 : index
// CHECK:     scf.for {{.+}} step %[[BLOCK]] {{.+}} -> (f64)
// CHECK:       arith.minsi
// CHECK:       scf.for {{.+}} -> (f32)
// CHECK-NOT: scf.for
func.func private @sum_for_all_sizes(%x: tensor<64x5000xf32>) -> tensor<f32> attributes {
    torch_ltc.varying_axes = array<i64: 1>,
    torch_ltc.schedule = #ltc.schedule<axes = [<[0] : 64>, <[1] : 5000>], outer = [], stored = [0],
      nests = [<axes = [0, 1], unrolled = [], members = [0]>], iterations = 1, grain = 0>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#id, #one], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<64x5000xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// The pass doesn't change a kernel without a schedule; bufferization lowers it.
// CHECK-LABEL: func.func private @insertion
// CHECK: tensor.insert_slice
func.func private @insertion(%x: tensor<4xf32>, %y: tensor<2xf32>) -> tensor<4xf32> {
  %0 = tensor.insert_slice %y into %x[1] [2] [1] : tensor<2xf32> into tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// expected-error @+1 {{@other has a schedule that doesn't match its ops}}
func.func private @other(%x: tensor<64xf32>) -> tensor<64xf32> attributes {
    torch_ltc.schedule = #ltc.schedule<axes = [<[0] : 32>], outer = [], split = 0, block = 32, stored = [0],
      nests = [<axes = [0], unrolled = [], members = [0]>], iterations = 1, grain = 0>} {
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.negf %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
