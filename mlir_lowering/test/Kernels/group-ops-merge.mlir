// RUN: ltc-opt %s -ltc-mlir-group-ops -ltc-mlir-outline-kernels | FileCheck %s

#id = affine_map<(i) -> (i)>

// The two chains of @f become one group, because %sum needs both. This group
// can't be merged with that of %r: the check, which reads %a and precedes %r,
// would be inside the merged group.

// CHECK-LABEL: func.func @f
// CHECK: %[[G:.+]]:3 = ltc.kernel_call
// CHECK: %[[C:.+]] = ltc.check_bounds %[[G]]
// CHECK: ltc.kernel_call @{{.+}}(%[[C]]
func.func @f(%x: tensor<8xi64>, %y: tensor<8xi64>) -> (tensor<8xi64>, tensor<8xi64>) {
  %e = tensor.empty() : tensor<8xi64>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xi64>) outs(%e : tensor<8xi64>) {
  ^bb0(%i: i64, %o: i64):
    %v = arith.muli %i, %i : i64
    linalg.yield %v : i64
  } -> tensor<8xi64>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%y : tensor<8xi64>) outs(%e : tensor<8xi64>) {
  ^bb0(%i: i64, %o: i64):
    %v = arith.muli %i, %i : i64
    linalg.yield %v : i64
  } -> tensor<8xi64>
  %c = ltc.check_bounds %a in [0, 8) : tensor<8xi64>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%c : tensor<8xi64>) outs(%e : tensor<8xi64>) {
  ^bb0(%i: i64, %o: i64):
    %v = arith.muli %i, %i : i64
    linalg.yield %v : i64
  } -> tensor<8xi64>
  %sum = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%b, %a : tensor<8xi64>, tensor<8xi64>) outs(%e : tensor<8xi64>) {
  ^bb0(%i: i64, %j: i64, %o: i64):
    %v = arith.addi %i, %j : i64
    linalg.yield %v : i64
  } -> tensor<8xi64>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%d, %sum : tensor<8xi64>, tensor<8xi64>) outs(%e : tensor<8xi64>) {
  ^bb0(%i: i64, %j: i64, %o: i64):
    %v = arith.addi %i, %j : i64
    linalg.yield %v : i64
  } -> tensor<8xi64>
  return %r, %b : tensor<8xi64>, tensor<8xi64>
}
