// RUN: ltc-opt %s --split-input-file --verify-diagnostics

func.func @types(%a: tensor<2xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{requires the same type for all operands and results}}
  %0 = "stablehlo.add"(%a, %b) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @field(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error@+1 {{unknown field 'lhs_dims'}}
  %0 = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_dims = [1]>}> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

// expected-error@+1 {{spatial dimensions must be in order}}
func.func private @order() attributes {x = #stablehlo.conv<[b, f, 1, 0]x[o, i, 0, 1]->[b, f, 0, 1]>}
