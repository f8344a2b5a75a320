// RUN: ltc-opt %s --split-input-file --ltc-mlir-group-ops --ltc-mlir-recompute-values --ltc-mlir-group-ops --ltc-mlir-outline-kernels | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#column = affine_map<(i, j) -> (i)>

// The first kernel sums each column of y = abs(x * s); the second kernel
// multiplies y by the sums, and recomputes y from x and s.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<512x512xf32>, %[[S:[a-z0-9]+]]: tensor<512xf32>
// CHECK: %[[SUM:.+]] = ltc.kernel_call @[[FORWARD:.+]](%[[X]], %[[S]]) : {{.*}} -> tensor<512xf32>
// CHECK: %[[R:.+]] = ltc.kernel_call @[[BACKWARD:.+]]({{.*}}) : {{.*}} -> tensor<512x512xf32>
// CHECK: return %[[R]]
// CHECK: func.func private @[[BACKWARD]]
// CHECK: math.absf
func.func @chain(%x: tensor<512x512xf32>, %s: tensor<512xf32>) -> tensor<512x512xf32> {
  %e = tensor.empty() : tensor<512x512xf32>
  %er = tensor.empty() : tensor<512xf32>
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<512xf32>) -> tensor<512xf32>
  %a = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<512x512xf32>, tensor<512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %y = math.absf %m : f32
    linalg.yield %y : f32
  } -> tensor<512x512xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]}
      ins(%a : tensor<512x512xf32>) outs(%z : tensor<512xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  %g = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %sum : tensor<512x512xf32>, tensor<512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<512x512xf32>
  return %g : tensor<512x512xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#column = affine_map<(i, j) -> (i)>

// A value is stored if its recomputation would read three tensors instead of
// one or, in @donated, a donated parameter.
// CHECK-LABEL: func.func @dear
// CHECK: ltc.kernel_call {{.*}} -> (tensor<512x512xf32>, tensor<512xf32>)
func.func @dear(%x: tensor<512x512xf32>, %y: tensor<512x512xf32>, %w: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %e = tensor.empty() : tensor<512x512xf32>
  %er = tensor.empty() : tensor<512xf32>
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<512xf32>) -> tensor<512xf32>
  %a = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y, %w : tensor<512x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.mulf %m, %r : f32
    linalg.yield %n : f32
  } -> tensor<512x512xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]}
      ins(%a : tensor<512x512xf32>) outs(%z : tensor<512xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  %g = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %sum : tensor<512x512xf32>, tensor<512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<512x512xf32>
  return %g : tensor<512x512xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#column = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @donated
// CHECK: ltc.kernel_call {{.*}} -> (tensor<512x512xf32>, tensor<512xf32>)
func.func @donated(%x: tensor<512x512xf32> {torch_ltc.donatable}) -> tensor<512x512xf32> {
  %e = tensor.empty() : tensor<512x512xf32>
  %er = tensor.empty() : tensor<512xf32>
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<512xf32>) -> tensor<512xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = math.absf %p : f32
    linalg.yield %m : f32
  } -> tensor<512x512xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]}
      ins(%a : tensor<512x512xf32>) outs(%z : tensor<512xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  %g = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %sum : tensor<512x512xf32>, tensor<512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<512x512xf32>
  return %g : tensor<512x512xf32>
}
