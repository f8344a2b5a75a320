// RUN: not ltc-opt %s --ltc-mlir-convert-torch-to-linalg 2>&1 | FileCheck %s

// CHECK: aten.foo has no lowering to linalg: {{.*}} (train.py:31 in encoder.layer)

func.func @located(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %0 = torch.operator "torch.aten.foo"(%a) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> loc("encoder.layer"("train.py":31:0))
  return %0 : !torch.vtensor<[4],f32>
}
