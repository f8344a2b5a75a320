// RUN: ltc-opt %s --ltc-mlir-schedule-kernels --ltc-mlir-plan-buffers --split-input-file | FileCheck %s

#id = affine_map<(i) -> (i)>

func.func private @negate(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.negf %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

func.func private @add(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// The kernels' results overwrite the first product in its range, which stays
// live for them; the last product reuses the range of the second, which is dead
// by then.
// CHECK-LABEL: func.func @temporaries
// CHECK-SAME: -> (tensor<64xf32> {torch_ltc.place = #ltc.place<output 0>})
// CHECK-SAME: torch_ltc.arena_bytes = 512 : i64
// CHECK: ltc.matmul %arg0, %arg0 {torch_ltc.places = [#ltc.place<arena 0, bytes = 256, live = 0 to 6>]}
// CHECK: ltc.matmul %arg0, %arg0 {torch_ltc.places = [#ltc.place<arena 256, bytes = 256, live = 1 to 4>], transpose_a}
// CHECK: ltc.kernel_call @negate({{.*}}) {torch_ltc.aliases = array<i64: 0>, torch_ltc.places = [#ltc.place<arena 0, bytes = 256, live = 0 to 6>]}
// CHECK-COUNT-2: ltc.kernel_call @add({{.*}}) {torch_ltc.aliases = array<i64: 0>, torch_ltc.places = [#ltc.place<arena 0, bytes = 256, live = 0 to 6>]}
// CHECK: ltc.matmul %arg0, %arg0 {torch_ltc.places = [#ltc.place<arena 256, bytes = 256, live = 5 to 6>], transpose_b}
// CHECK: ltc.kernel_call @add({{.*}}) {torch_ltc.places = [#ltc.place<output 0>]}
func.func @temporaries(%x: tensor<8x8xf32>) -> tensor<64xf32> {
  %a = ltc.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = ltc.matmul %x, %x {transpose_a} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %flat_a = tensor.collapse_shape %a [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %flat_b = tensor.collapse_shape %b [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %c = ltc.kernel_call @negate(%flat_a) : (tensor<64xf32>) -> tensor<64xf32>
  %d = ltc.kernel_call @add(%c, %flat_b) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %e = ltc.kernel_call @add(%d, %flat_b) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %f = ltc.matmul %x, %x {transpose_b} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %flat_f = tensor.collapse_shape %f [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %g = ltc.kernel_call @add(%e, %flat_f) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %g : tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>

func.func private @add(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// A new weight overwrites the old one, a parameter is forwarded, and a result
// that is returned twice has separate memory for each output.
// CHECK-LABEL: func.func @outputs
// CHECK-SAME: -> (tensor<64xf32> {torch_ltc.place = #ltc.place<parameter 0>, torch_ltc.updates = 0 : i64},
// CHECK-SAME: tensor<64xf32> {torch_ltc.place = #ltc.place<parameter 1>},
// CHECK-SAME: tensor<64xf32> {torch_ltc.place = #ltc.place<output 2>},
// CHECK-SAME: tensor<64xf32> {torch_ltc.place = #ltc.place<output 3>},
// CHECK-SAME: tensor<4xf32> {torch_ltc.place = #ltc.place<output 4>},
// CHECK-SAME: tensor<2xi64> {torch_ltc.place = #ltc.place<output 5>})
// CHECK-SAME: torch_ltc.arena_bytes = 0 : i64
// CHECK: ltc.kernel_call @add(%arg1, %arg1) {torch_ltc.places = [#ltc.place<output 2>]}
// CHECK: ltc.kernel_call @add(%arg0, %arg1) {torch_ltc.aliases = array<i64: 0>, torch_ltc.places = [#ltc.place<parameter 0>]}
func.func @outputs(%w: tensor<64xf32> {torch_ltc.donatable}, %g: tensor<64xf32>)
    -> (tensor<64xf32> {torch_ltc.updates = 0 : i64}, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>,
        tensor<4xf32>, tensor<2xi64>) {
  %twice = ltc.kernel_call @add(%g, %g) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %new = ltc.kernel_call @add(%w, %g) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %part = tensor.extract_slice %twice[8] [4] [1] : tensor<64xf32> to tensor<4xf32>
  %constant = arith.constant dense<[3, 5]> : tensor<2xi64>
  return %new, %g, %twice, %twice, %part, %constant
      : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>, tensor<2xi64>
}

// -----

// Products are written directly to the join's memory; the program's parameters
// are copied there. The result of a check is in its operand's memory.
// CHECK-LABEL: func.func @join
// CHECK-SAME: torch_ltc.arena_bytes = 128 : i64
// CHECK: ltc.check_bounds %arg1 in[0, 9) : tensor<3xi64>
// CHECK: ltc.matmul {{.*}} {torch_ltc.places = [#ltc.place<arena 0 + 32, bytes = 96, live = 1 to 4>]}
// CHECK: ltc.matmul {{.*}} {torch_ltc.places = [#ltc.place<arena 0 + 64, bytes = 96, live = 1 to 4>], transpose_b}
// CHECK: ltc.join {{.*}} {torch_ltc.places = [#ltc.place<arena 0, bytes = 96, live = 1 to 4>]}
func.func @join(%x: tensor<2x4xf32>, %ids: tensor<3xi64>, %w: tensor<4x4xf32>) -> (tensor<6x4xf32>, tensor<3xi64>) {
  %checked = ltc.check_bounds %ids in [0, 9) : tensor<3xi64>
  %a = ltc.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %b = ltc.matmul %x, %w {transpose_b} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %whole = ltc.join %x, %a, %b : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  %y = ltc.matmul %whole, %w : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
  return %y, %checked : tensor<6x4xf32>, tensor<3xi64>
}

// -----

#id = affine_map<(i) -> (i)>

// A kernel before a check isn't written over a parameter, a later one is.
// CHECK-LABEL: func.func @late_check
// CHECK: ltc.kernel_call @both({{.*}}) {torch_ltc.places = [#ltc.place<output 0>, #ltc.place<arena {{.*}}>]}
// CHECK: ltc.check_bounds
// CHECK: ltc.kernel_call @double({{.*}}) {torch_ltc.aliases = array<i64: 0>, torch_ltc.places = [#ltc.place<parameter 1>]}
func.func private @both(%x: tensor<64xi64>) -> (tensor<64xi64>, tensor<64xi64>) {
  %e = tensor.empty() : tensor<64xi64>
  %0:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xi64>) outs(%e, %e : tensor<64xi64>, tensor<64xi64>) {
  ^bb0(%a: i64, %o: i64, %p: i64):
    %v = arith.addi %a, %a : i64
    %w = arith.muli %a, %a : i64
    linalg.yield %v, %w : i64, i64
  } -> (tensor<64xi64>, tensor<64xi64>)
  return %0#0, %0#1 : tensor<64xi64>, tensor<64xi64>
}
func.func private @double(%x: tensor<64xi64>) -> tensor<64xi64> {
  %e = tensor.empty() : tensor<64xi64>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xi64>) outs(%e : tensor<64xi64>) {
  ^bb0(%a: i64, %o: i64):
    %v = arith.addi %a, %a : i64
    linalg.yield %v : i64
  } -> tensor<64xi64>
  return %0 : tensor<64xi64>
}
func.func @late_check(%v: tensor<64xi64> {torch_ltc.donatable}, %w: tensor<64xi64> {torch_ltc.donatable})
    -> (tensor<64xi64> {torch_ltc.updates = 0 : i64}, tensor<64xi64> {torch_ltc.updates = 1 : i64}, tensor<64xi64>) {
  %new:2 = ltc.kernel_call @both(%v) : (tensor<64xi64>) -> (tensor<64xi64>, tensor<64xi64>)
  %checked = ltc.check_bounds %new#1 in [0, 9) : tensor<64xi64>
  %other = ltc.kernel_call @double(%w) : (tensor<64xi64>) -> tensor<64xi64>
  %sum = ltc.kernel_call @double(%checked) : (tensor<64xi64>) -> tensor<64xi64>
  return %new#0, %other, %sum : tensor<64xi64>, tensor<64xi64>, tensor<64xi64>
}
