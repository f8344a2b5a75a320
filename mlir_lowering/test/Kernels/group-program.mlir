// RUN: ltc-opt %s --ltc-mlir-group-program | FileCheck %s
// RUN: ltc-opt %s --ltc-mlir-group-program --ltc-mlir-outline-kernels | FileCheck %s --check-prefix=ONE

// All ops that compute are one group, even if group-ops wouldn't fuse them.
#id = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
// CHECK-LABEL: func.func @step
// CHECK: linalg.generic {{.*}} attrs = {torch_ltc.group = 0 : i64}
// CHECK: linalg.generic {{.*}} attrs = {torch_ltc.group = 0 : i64}
// CHECK: linalg.generic {{.*}} attrs = {torch_ltc.group = 0 : i64}
// ONE-LABEL: func.func @step
// ONE-COUNT-1: ltc.kernel_call
// ONE-NOT: ltc.kernel_call
// ONE: return
func.func @step(%x: tensor<8xf32>, %y: tensor<6xf32>) -> (tensor<8xf32>, tensor<f32>, tensor<6xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>
  %1 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]}
      ins(%0 : tensor<8xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  %f = tensor.empty() : tensor<6xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%y : tensor<6xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.negf %a : f32
    linalg.yield %v : f32
  } -> tensor<6xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<f32>, tensor<6xf32>
}
