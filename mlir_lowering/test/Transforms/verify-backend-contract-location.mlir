// RUN: not ltc-opt %s --ltc-mlir-verify-backend-contract 2>&1 | FileCheck %s
// RUN: ltc-opt %s --ltc-mlir-verify-backend-contract=legal-ops=mylib.scale

// The error names the user's line and module.
// CHECK: train.py:12:0: error: backend contract, rule BC4: 'torch.mylib.scale' (train.py:12 in encoder.0): the target cannot lower this op
func.func @main(%a: !torch.vtensor<[2],f32>) {
  %0 = torch.operator "torch.mylib.scale"(%a) : (!torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> loc(#where)
  return
}
#line = loc("train.py":12:0)
#where = loc("encoder.0"(#line))
