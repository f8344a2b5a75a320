// RUN: ltc-opt %s --split-input-file --verify-diagnostics

func.func @empty_range() {
  // expected-error @below {{has an empty range, from 5 to 4}}
  %s0 = torch.symbolic_int "s0" {min_val = 5, max_val = 4} : !torch.int
  return
}

// -----

func.func @no_symbol(%arg0: !torch.vtensor<[?],f32>) {
  %int1 = torch.constant.int 1
  // expected-error @below {{has a symbol that isn't a torch.symbolic_int}}
  torch.bind_symbolic_shape %arg0, [%int1], affine_map<()[s0] -> (s0)> : !torch.vtensor<[?],f32>
  return
}

// -----

func.func @other_rank(%arg0: !torch.vtensor<[?,3],f32>) {
  %s0 = torch.symbolic_int "s0" {min_val = 2, max_val = 4} : !torch.int
  // expected-error @below {{has 1 expressions for the sizes of a '!torch.vtensor<[?,3],f32>'}}
  torch.bind_symbolic_shape %arg0, [%s0], affine_map<()[s0] -> (s0)> : !torch.vtensor<[?,3],f32>
  return
}

// -----

func.func @other_symbols(%arg0: !torch.vtensor<[?],f32>) {
  %s0 = torch.symbolic_int "s0" {min_val = 2, max_val = 4} : !torch.int
  // expected-error @below {{has 1 symbols, but the expressions are of 2}}
  torch.bind_symbolic_shape %arg0, [%s0], affine_map<()[s0, s1] -> (s0 + s1)> : !torch.vtensor<[?],f32>
  return
}
