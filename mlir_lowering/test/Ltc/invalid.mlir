// RUN: ltc-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: tensor<4x8xf32>, %b: tensor<16x8xf32>) {
  // expected-error @+1 {{sizes don't fit: 4x8 times 16x8 into 4x16}}
  %c = ltc.matmul %a, %b : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x2xf64>) {
  // expected-error @+1 {{failed to verify that all of {a, b, c} have same element type}}
  %c = ltc.matmul %a, %b : (tensor<4x8xf32>, tensor<8x2xf64>) -> tensor<4x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+1 {{output dimension 2 must be 6, got 4}}
  %y = ltc.convolution %x, %w
      {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>,
       dilation = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+1 {{'stride' has 1 elements for 2 spatial dimensions}}
  %y = ltc.convolution %x, %w
      {stride = array<i64: 1>, padding = array<i64: 0, 0>,
       dilation = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+2 {{attribute 'dilation' failed to satisfy constraint: i64 dense array attribute whose value is positive}}
  %y = ltc.convolution %x, %w
      {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>,
       dilation = array<i64: 0, 1>, groups = 1 : i64}
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @groups_that_do_not_fit(%g: tensor<2x4x6xf32>, %x: tensor<2x3x8xf32>) {
  // expected-error @+1 {{channels or batch don't match: input 'tensor<2x3x8xf32>', weight 'tensor<4x3x3xf32>', output 'tensor<2x4x6xf32>', groups 2}}
  %y = ltc.convolution_backward_weight %g, %x
      {stride = array<i64: 1>, padding = array<i64: 0>,
       dilation = array<i64: 1>, groups = 2 : i64}
      : (tensor<2x4x6xf32>, tensor<2x3x8xf32>) -> tensor<4x3x3xf32>
  return
}

// -----

func.func @window_beyond_the_input(%g: tensor<2x4x1xf32>, %w: tensor<4x3x5xf32>) {
  // expected-error @+1 {{window of dimension 2 is larger than the padded input}}
  %y = ltc.convolution_backward_input %g, %w
      {stride = array<i64: 1>, padding = array<i64: 0>,
       dilation = array<i64: 1>, groups = 1 : i64}
      : (tensor<2x4x1xf32>, tensor<4x3x5xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @bias_of_other_size(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>, %bias: tensor<4xf32>) {
  // expected-error @+1 {{bias must be 'tensor<16xf32>', got 'tensor<4xf32>'}}
  %c = ltc.matmul %a, %b bias %bias
      : (tensor<4x8xf32>, tensor<8x16xf32>, tensor<4xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @bias_of_other_dtype(%g: tensor<2x4x6xf32>, %x: tensor<2x3x8xf32>) {
  // expected-error @+1 {{bias must be 'tensor<4xf32>', got 'tensor<4xf64>'}}
  %y:2 = ltc.convolution_backward_weight %g, %x
      {stride = array<i64: 1>, padding = array<i64: 0>,
       dilation = array<i64: 1>, groups = 1 : i64}
      : (tensor<2x4x6xf32>, tensor<2x3x8xf32>) -> (tensor<4x3x3xf32>, tensor<4xf64>)
  return
}

// -----

func.func @batch_of_other_size(%a: tensor<2x4x8xf32>, %b: tensor<3x8x16xf32>) {
  // expected-error @+1 {{batch of 'tensor<3x8x16xf32>' differs from the result's 2}}
  %c = ltc.matmul %a, %b
      : (tensor<2x4x8xf32>, tensor<3x8x16xf32>) -> tensor<2x4x16xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{calls 'k', which is not a function of this module}}
  %y = ltc.kernel_call @k(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @attention_of_other_widths(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x3x7xf32>, %v: tensor<1x2x3x8xf32>) {
  // expected-error @+1 {{key must be 'tensor<1x2x3x8xf32>', got 'tensor<1x2x3x7xf32>'}}
  %y:2 = ltc.attention %q, %k, %v : (tensor<1x2x4x8xf32>, tensor<1x2x3x7xf32>, tensor<1x2x3x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @attention_with_a_mask_of_other_sizes(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x3x8xf32>, %m: tensor<1x1x2x3xf32>) {
  // expected-error @+1 {{mask 'tensor<1x1x2x3xf32>' can't be broadcast to 'tensor<1x2x4x3xf32>'}}
  %y:2 = ltc.attention %q, %k, %k mask %m : (tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x1x2x3xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @attention_in_f64(%q: tensor<1x2x4x8xf64>, %k: tensor<1x2x3x8xf64>) {
  // expected-error @+1 {{operand #0 must be statically shaped f32 tensor of rank 4}}
  %y:2 = ltc.attention %q, %k, %k : (tensor<1x2x4x8xf64>, tensor<1x2x3x8xf64>, tensor<1x2x3x8xf64>) -> (tensor<1x2x4x8xf64>, tensor<1x2x4xf64>)
  return
}

// -----

func.func @attention_backward_with_another_sum(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x3x8xf32>, %s: tensor<1x2x3xf32>) {
  // expected-error @+1 {{log_sum must be 'tensor<1x2x4xf32>', got 'tensor<1x2x3xf32>'}}
  %y:3 = ltc.attention_backward %q, %q, %k, %k, %q, %s : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x3xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>)
  return
}

// -----

func.func @attention_backward_with_another_gradient(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x3x8xf32>, %s: tensor<1x2x4xf32>) {
  // expected-error @+1 {{grad_key must be 'tensor<1x2x3x8xf32>', got 'tensor<1x2x4x8xf32>'}}
  %y:3 = ltc.attention_backward %q, %q, %k, %k, %q, %s : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>)
  return
}

// -----

func.func @join_of_other_sizes(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) {
  // expected-error @+1 {{'ltc.join' op can't make 'tensor<2x4xf32>' a part of 'tensor<4x3xf32>': only the first size may differ}}
  %0 = ltc.join %a, %b : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @join_of_too_few_rows(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'ltc.join' op has parts of 2 rows, but makes 'tensor<4x3xf32>'}}
  %0 = ltc.join %a : (tensor<2x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{checks tensors of i32 or i64}}
  %y = ltc.check_bounds %x in [0, 3) : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{checks integer divisors}}
  %y = ltc.check_bounds %x in [0, 0) {nonzero} : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{requires attribute 'result_dtypes'}}
  %y = ltc.host_call "aten::i0"(%x) {arguments = [f32]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{has dtypes in its attributes that differ from its tensors'}}
  %y = ltc.host_call "aten::i0"(%x) {arguments = [f64], result_dtypes = [f32]}
      : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{has an argument of an unknown kind: affine_map<(d0) -> (d0)>}}
  %y = ltc.host_call "aten::i0"(%x) {arguments = [f32, affine_map<(d0) -> (d0)>], result_dtypes = [f32]}
      : (tensor<2xf32>) -> tensor<2xf32>
  return
}
