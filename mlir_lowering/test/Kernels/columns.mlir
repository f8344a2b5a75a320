// RUN: ltc-opt %s --pass-pipeline='builtin.module(cse,ltc-mlir-normalize-ops,ltc-mlir-group-ops,ltc-mlir-outline-kernels,ltc-mlir-deduplicate-kernels)' | FileCheck %s

// The columns of a matrix are read through views of the same length, so that
// they share a kernel, even if an op that kernels clone (%e) is elsewhere in
// the program.
// CHECK-LABEL: func.func @step
// CHECK: %[[A:.+]] = tensor.extract_slice %{{.+}}[2] [29] [1]
// CHECK: ltc.kernel_call @[[K:k_[0-9a-f]+]](%[[A]])
// CHECK: %[[B:.+]] = tensor.extract_slice %{{.+}}[5] [29] [1]
// CHECK: ltc.kernel_call @[[K]](%[[B]])
// CHECK: func.func private @[[K]]
// CHECK-NOT: func.func
func.func @step(%x: tensor<4x9xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %0 = tensor.extract_slice %x[0, 2] [4, 2] [1, 1] : tensor<4x9xf32> to tensor<4x2xf32>
  %e = tensor.empty() : tensor<4x2xf32>
  %1 = linalg.exp ins(%0 : tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %2 = tensor.extract_slice %x[0, 5] [4, 2] [1, 1] : tensor<4x9xf32> to tensor<4x2xf32>
  %3 = linalg.exp ins(%2 : tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %1, %3 : tensor<4x2xf32>, tensor<4x2xf32>
}
