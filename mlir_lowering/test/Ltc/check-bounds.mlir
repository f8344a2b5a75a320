// RUN: ltc-opt %s -canonicalize -cse -split-input-file | FileCheck %s

// Bounds checks of constants are folded, equal checks are merged, and unused
// checks are removed.

// CHECK-LABEL: func.func @constants
// CHECK: %[[C:.+]] = arith.constant dense<[0, 2]>
// CHECK-NEXT: return %[[C]]
func.func @constants() -> tensor<2xi64> {
  %c = arith.constant dense<[0, 2]> : tensor<2xi64>
  %checked = ltc.check_bounds %c in [0, 3) : tensor<2xi64>
  return %checked : tensor<2xi64>
}

// -----

// CHECK-LABEL: func.func @wrong_constant
// CHECK: ltc.check_bounds %{{.+}} in[0, 2) : tensor<2xi64>
func.func @wrong_constant() -> tensor<2xi64> {
  %c = arith.constant dense<[0, 2]> : tensor<2xi64>
  %checked = ltc.check_bounds %c in [0, 2) : tensor<2xi64>
  return %checked : tensor<2xi64>
}

// -----

// CHECK-LABEL: func.func @equal
// CHECK-COUNT-1: ltc.check_bounds
// CHECK-NOT: ltc.check_bounds
func.func @equal(%i: tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>) {
  %a = ltc.check_bounds %i in [-3, 3) : tensor<2xi64>
  %b = ltc.check_bounds %i in [-3, 3) : tensor<2xi64>
  %unused = ltc.check_bounds %i in [0, 3) : tensor<2xi64>
  return %a, %b : tensor<2xi64>, tensor<2xi64>
}
