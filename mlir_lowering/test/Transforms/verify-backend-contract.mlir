// RUN: ltc-opt %s -split-input-file -verify-diagnostics --ltc-mlir-verify-backend-contract

// The contract allows dynamic scalars, constants and lists.
func.func @allowed(%a: !torch.vtensor<[2,3],f32> {torch_ltc.donatable}, %lr: !torch.float, %n: !torch.int) -> !torch.vtensor<[3,2],f32> {
  %int1 = torch.constant.int 1
  %int2 = torch.constant.int 2
  %int3 = torch.constant.int 3
  %0 = torch.aten.add.Scalar %a, %lr, %int1 : !torch.vtensor<[2,3],f32>, !torch.float, !torch.int -> !torch.vtensor<[2,3],f32>
  %1 = torch.prim.NumToTensor.Scalar %n : !torch.int -> !torch.vtensor<[],si64>
  %2 = torch.aten.mul.Tensor %0, %1 : !torch.vtensor<[2,3],f32>, !torch.vtensor<[],si64> -> !torch.vtensor<[2,3],f32>
  %3 = torch.prim.ListConstruct %int3, %int2 : (!torch.int, !torch.int) -> !torch.list<int>
  %4 = torch.aten.view %2, %3 : !torch.vtensor<[2,3],f32>, !torch.list<int> -> !torch.vtensor<[3,2],f32>
  return %4 : !torch.vtensor<[3,2],f32>
}

// -----

func.func @BC1(%a: !torch.vtensor<[2],f32>) {
  // expected-error@+1 {{backend contract, rule BC1: 'torch.aten.relu_' (}}
  %0 = torch.operator "torch.aten.relu_"(%a) : (!torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32>
  return
}

// -----

// expected-error@+1 {{parameter 0 has a size that isn't known: '!torch.vtensor<[?],f32>'}}
func.func @BC2(%a: !torch.vtensor<[?],f32>) {
  // expected-error@+1 {{rule BC2: 'torch.aten.relu'}}
  %0 = torch.aten.relu %a : !torch.vtensor<[?],f32> -> !torch.vtensor<*,f32>
  return
}

// -----

func.func @BC3(%a: !torch.vtensor<[2],f32>) {
  // expected-error@+1 {{result 0 has an unknown dtype}}
  %0 = torch.aten.relu %a : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],unk>
  return
}

// -----

func.func @BC4_unknown(%a: !torch.vtensor<[2],f32>) {
  // expected-error@+1 {{rule BC4: 'torch.mylib.scale' (}}
  %0 = torch.operator "torch.mylib.scale"(%a) : (!torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32>
  return
}

// -----

func.func @BC4_decomposed(%a: !torch.vtensor<[2],f32>) {
  %none = torch.constant.none
  // expected-error@+1 {{rule BC4: 'torch.aten.mean'}}
  %0 = torch.aten.mean %a, %none : !torch.vtensor<[2],f32>, !torch.none -> !torch.vtensor<[],f32>
  return
}

// -----

// expected-error@+1 {{the module must have one public function, has 2}}
module {
  // expected-error@+1 {{parameter 0 must be a tensor, an int or a float, is '!torch.bool'}}
  func.func @BC5(%a: !torch.bool) { return }
  func.func @second() { return }
}

// -----

func.func @BC6(%a: !torch.vtensor<[2,3],f32>, %n: !torch.int) {
  %0 = torch.prim.ListConstruct %n : (!torch.int) -> !torch.list<int>
  // expected-error@+1 {{rule BC6: 'torch.aten.view'}}
  %1 = torch.aten.view %a, %0 : !torch.vtensor<[2,3],f32>, !torch.list<int> -> !torch.vtensor<[6],f32>
  return
}
