// RUN: ltc-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: tensor<4x8xf32>, %b: tensor<16x8xf32>) {
  // expected-error @+1 {{matmul sizes don't fit: 4x8 times 16x8 into 4x16}}
  %c = ltc.library_call "matmul"(%a, %b) : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x2xf64>) {
  // expected-error @+1 {{mixes element types 'f32' and 'f64'}}
  %c = ltc.library_call "matmul"(%a, %b) : (tensor<4x8xf32>, tensor<8x2xf64>) -> tensor<4x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+1 {{convolution output dimension 2 must be 6, got 4}}
  %y = ltc.library_call "convolution_forward"(%x, %w)
      {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>,
       dilation = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+1 {{'stride' has 1 elements for 2 spatial dimensions}}
  %y = ltc.library_call "convolution_forward"(%x, %w)
      {stride = array<i64: 1>, padding = array<i64: 0, 0>,
       dilation = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{unknown library function 'fft'}}
  %y = ltc.library_call "fft"(%x) : (tensor<2xf32>) -> tensor<2xf32>
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
  // expected-error @+1 {{attention of 'tensor<1x2x4x8xf32>', 'tensor<1x2x3x7xf32>' and 'tensor<1x2x3x8xf32>' has no 'tensor<1x2x3x7xf32>'}}
  %y:2 = ltc.library_call "attention"(%q, %k, %v) : (tensor<1x2x4x8xf32>, tensor<1x2x3x7xf32>, tensor<1x2x3x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @attention_with_a_mask_of_other_sizes(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x3x8xf32>, %m: tensor<1x1x2x3xf32>) {
  // expected-error @+1 {{has no 'tensor<1x1x2x3xf32>'}}
  %y:2 = ltc.library_call "attention"(%q, %k, %k, %m) : (tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x1x2x3xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @attention_in_f64(%q: tensor<1x2x4x8xf64>, %k: tensor<1x2x3x8xf64>) {
  // expected-error @+1 {{attention is computed in f32}}
  %y:2 = ltc.library_call "attention"(%q, %k, %k) : (tensor<1x2x4x8xf64>, tensor<1x2x3x8xf64>, tensor<1x2x3x8xf64>) -> (tensor<1x2x4x8xf64>, tensor<1x2x4xf64>)
  return
}

// -----

func.func @attention_backward_without_a_sum(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x3x8xf32>) {
  // expected-error @+1 {{wrong number of operands or results}}
  %y:3 = ltc.library_call "attention_backward"(%q, %q, %k, %k, %q) : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>)
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
  // expected-error @+1 {{checks divisors that are integers}}
  %y = ltc.check_bounds %x in [0, 0) {nonzero} : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{needs the attributes 'op', 'arguments' and 'results'}}
  %y = ltc.library_call "host"(%x) {op = "aten::i0"} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{has other dtypes in its attributes than tensors}}
  %y = ltc.library_call "host"(%x) {op = "aten::i0", arguments = [f64], results = [f32]}
      : (tensor<2xf32>) -> tensor<2xf32>
  return
}
