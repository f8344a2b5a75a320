// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-convert-tosa-extremes))' | FileCheck %s

// CHECK-LABEL: func.func @maximum
// CHECK: %[[LOWEST:.+]] = arith.constant 0xFF800000 : f32
// CHECK: %[[START:.+]] = linalg.fill ins(%[[LOWEST]] : f32) {{.*}} -> tensor<2xf32>
// CHECK: %[[MAX:.+]] = linalg.reduce ins({{.*}} : tensor<2x3xf32>) outs(%[[START]] : tensor<2xf32>) dimensions = [1]
// CHECK: arith.maximumf
// CHECK: tosa.reshape %[[MAX]], {{.*}} -> tensor<2x1xf32>
func.func @maximum(%a: tensor<2x3xf32>) -> tensor<2x1xf32> {
  %0 = tosa.reduce_max %a {axis = 1 : i32} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
}

// Reductions of integers aren't converted, because integers have no infinities.

// CHECK-LABEL: func.func @minimum
// CHECK: tosa.reduce_min
func.func @minimum(%a: tensor<2x3xi32>) -> tensor<2x1xi32> {
  %0 = tosa.reduce_min %a {axis = 1 : i32} : (tensor<2x3xi32>) -> tensor<2x1xi32>
  return %0 : tensor<2x1xi32>
}
