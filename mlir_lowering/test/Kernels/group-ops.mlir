// RUN: ltc-opt %s -ltc-mlir-group-ops -split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>

// An elementwise op, its row sums and their users are one group.
// CHECK-LABEL: func.func @rows
// CHECK-COUNT-3: torch_ltc.group = 0
// CHECK-NOT: torch_ltc.group = 1
func.func @rows(%x: tensor<512x256xf32>) -> tensor<512x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x256xf32>
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<512x256xf32>) outs(%e : tensor<512x256xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<512x256xf32>
  %er = tensor.empty() : tensor<512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%er : tensor<512xf32>) -> tensor<512xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<512x256xf32>) outs(%init : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<512xf32>
  %quotient = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<512x256xf32>, tensor<512xf32>) outs(%e : tensor<512x256xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<512x256xf32>
  return %quotient : tensor<512x256xf32>
}

// -----

// Row sums and column sums are two groups: they share no loop that threads
// could split.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
// CHECK-LABEL: func.func @rowsAndColumns
// CHECK: torch_ltc.group = 0
// CHECK: torch_ltc.group = 1
func.func @rowsAndColumns(%x: tensor<512x256xf32>) -> (tensor<512xf32>, tensor<256xf32>) {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<512xf32>
  %initR = linalg.fill ins(%zero : f32) outs(%er : tensor<512xf32>) -> tensor<512xf32>
  %rows = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<512x256xf32>) outs(%initR : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<512xf32>
  %ec = tensor.empty() : tensor<256xf32>
  %initC = linalg.fill ins(%zero : f32) outs(%ec : tensor<256xf32>) -> tensor<256xf32>
  %columns = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<512x256xf32>) outs(%initC : tensor<256xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<256xf32>
  return %rows, %columns : tensor<512xf32>, tensor<256xf32>
}

// -----

// Two groups are merged if an op needs both; a reshape between members joins
// the group.
#one = affine_map<(i) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
// CHECK-LABEL: func.func @merge
// CHECK-COUNT-4: torch_ltc.group = 1
// CHECK-NOT: torch_ltc.group = 0
func.func @merge(%x: tensor<4096xf32>, %y: tensor<4096xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<4096xf32>
  %e2 = tensor.empty() : tensor<64x64xf32>
  %a = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%x : tensor<4096xf32>) outs(%e : tensor<4096xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = math.exp %i : f32
    linalg.yield %r : f32
  } -> tensor<4096xf32>
  %b = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%y : tensor<4096xf32>) outs(%e : tensor<4096xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = math.log %i : f32
    linalg.yield %r : f32
  } -> tensor<4096xf32>
  %s = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<4096xf32>, tensor<4096xf32>) outs(%e : tensor<4096xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.addf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<4096xf32>
  %v = tensor.expand_shape %s [[0, 1]] output_shape [64, 64] : tensor<4096xf32> into tensor<64x64xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v : tensor<64x64xf32>) outs(%e2 : tensor<64x64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = math.tanh %i : f32
    linalg.yield %r : f32
  } -> tensor<64x64xf32>
  return %t : tensor<64x64xf32>
}
