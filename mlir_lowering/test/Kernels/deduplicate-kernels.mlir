// RUN: ltc-opt %s --ltc-mlir-deduplicate-kernels | FileCheck %s

// Kernels with equal text are merged, whatever their names; a kernel with
// a different constant isn't.
// CHECK-LABEL: func.func @step
// CHECK: %[[A:.+]] = ltc.kernel_call @[[ONE:k_[0-9a-f]+]](%arg0)
// CHECK: %[[B:.+]] = ltc.kernel_call @[[ONE]](%[[A]])
// CHECK: ltc.kernel_call @[[OTHER:k_[0-9a-f]+]](%[[B]])
// CHECK: func.func private @[[ONE]]
// CHECK: arith.constant dense<1.0
// CHECK: func.func private @[[OTHER]]
// CHECK: arith.constant dense<2.0
// CHECK-NOT: func.func
func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = ltc.kernel_call @first(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = ltc.kernel_call @second(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = ltc.kernel_call @third(%1) : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

func.func private @first(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = arith.constant dense<1.0> : tensor<8xf32>
  %0 = arith.addf %x, %c : tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @second(%y: tensor<8xf32>) -> tensor<8xf32> {
  %c = arith.constant dense<1.0> : tensor<8xf32>
  %0 = arith.addf %y, %c : tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @third(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = arith.constant dense<2.0> : tensor<8xf32>
  %0 = arith.addf %x, %c : tensor<8xf32>
  return %0 : tensor<8xf32>
}
