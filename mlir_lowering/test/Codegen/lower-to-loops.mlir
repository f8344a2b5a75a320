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
