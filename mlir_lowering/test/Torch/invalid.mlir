// RUN: ltc-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{dtype must be f64, f32, f16, bf16, i1, an integer with a sign such as si64, or a complex number of f32 or f64, got 'i64'}}
func.func @signless(%0: !torch.vtensor<[2],i64>) { return }

// -----

// expected-error@+1 {{unknown torch type 'tensr'}}
func.func @unknown_type(%0: !torch.list<tensr>) { return }

// -----

func.func @operand(%0: !torch.vtensor<[2],f32>, %1: !torch.str) {
  // expected-error@+1 {{'torch.aten.add.Tensor' op operand #1 must be torch tensor, but got '!torch.str'}}
  %2 = torch.aten.add.Tensor %0, %1, %1 : !torch.vtensor<[2],f32>, !torch.str, !torch.str -> !torch.vtensor<[2],f32>
  return
}

// -----

func.func @list(%0: !torch.float) {
  // expected-error@+1 {{an element of type '!torch.float' cannot be in a list of '!torch.int'}}
  %1 = torch.prim.ListConstruct %0 : (!torch.float) -> !torch.list<int>
  return
}

// -----

func.func @unpack(%0: !torch.vtensor<[2],f32>) {
  %1 = torch.prim.ListConstruct %0 : (!torch.vtensor<[2],f32>) -> !torch.list<vtensor>
  // expected-error@+1 {{unpacks 2 values of a list of 1}}
  %2:2 = torch.prim.ListUnpack %1 : !torch.list<vtensor> -> !torch.vtensor, !torch.vtensor
  return
}

// -----

func.func @literal() {
  // expected-error@+1 {{does not match the result}}
  %0 = torch.vtensor.literal(dense<1> : tensor<2xsi64>) : !torch.vtensor<[3],si64>
  return
}

// -----

func.func @number(%0: !torch.float) {
  // expected-error@+1 {{makes a tensor of rank 0}}
  %1 = torch.prim.NumToTensor.Scalar %0 : !torch.float -> !torch.vtensor<[1],f32>
  return
}

// -----

func.func @view(%0: !torch.vtensor<[2,3],f32>, %1: !torch.list<int>) {
  // expected-error@+1 {{a view has as many elements as its operand}}
  %2 = torch.aten.view %0, %1 : !torch.vtensor<[2,3],f32>, !torch.list<int> -> !torch.vtensor<[5],f32>
  return
}

// -----

func.func @mm(%0: !torch.vtensor<[2,3],f32>, %1: !torch.vtensor<[4,5],f32>) {
  // expected-error@+1 {{sizes of a matrix product don't match}}
  %2 = torch.aten.mm %0, %1 : !torch.vtensor<[2,3],f32>, !torch.vtensor<[4,5],f32> -> !torch.vtensor<[2,5],f32>
  return
}
