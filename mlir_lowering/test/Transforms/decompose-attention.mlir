// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops))' | FileCheck %s
// RUN: ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops{legal-ops=torch_ltc.attention,torch_ltc.attention_backward}))' | FileCheck %s --check-prefix=WHOLE

// Attention becomes two products around a softmax, and its gradient five
// products.

// WHOLE: torch.torch_ltc.attention
// WHOLE: torch.torch_ltc.attention_backward
// CHECK-LABEL: func.func @forward
// CHECK-NOT: torch_ltc.attention
// CHECK: torch.aten.bmm {{.*}} -> !torch.vtensor<[8,3,5],f32>
// CHECK: torch.aten.masked_fill
// CHECK: torch.aten.amax
// CHECK: torch.aten.exp
// CHECK: torch.aten.bmm {{.*}} -> !torch.vtensor<[8,3,6],f32>
// CHECK: torch.aten.log
func.func @forward(%q: !torch.vtensor<[2,4,3,8],f32>, %k: !torch.vtensor<[2,4,5,8],f32>, %v: !torch.vtensor<[2,4,5,6],f32>) -> (!torch.vtensor<[2,4,3,6],f32>, !torch.vtensor<[2,4,3],f32>) {
  %none = torch.constant.none
  %true = torch.constant.bool true
  %0:2 = torch.torch_ltc.attention %q, %k, %v, %none, %true : !torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.vtensor<[2,4,5,6],f32>, !torch.none, !torch.bool -> !torch.vtensor<[2,4,3,6],f32>, !torch.vtensor<[2,4,3],f32>
  return %0#0, %0#1 : !torch.vtensor<[2,4,3,6],f32>, !torch.vtensor<[2,4,3],f32>
}

// CHECK-LABEL: func.func @backward
// CHECK-NOT: torch_ltc.attention
// CHECK-COUNT-5: torch.aten.bmm
func.func @backward(%g: !torch.vtensor<[2,4,3,6],f32>, %q: !torch.vtensor<[2,4,3,8],f32>, %k: !torch.vtensor<[2,4,5,8],f32>, %v: !torch.vtensor<[2,4,5,6],f32>, %s: !torch.vtensor<[2,4,3],f32>, %m: !torch.vtensor<[2,1,1,5],f32>) -> (!torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.vtensor<[2,4,5,6],f32>) {
  %false = torch.constant.bool false
  %0:3 = torch.torch_ltc.attention_backward %g, %q, %k, %v, %g, %s, %m, %false : !torch.vtensor<[2,4,3,6],f32>, !torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.vtensor<[2,4,5,6],f32>, !torch.vtensor<[2,4,3,6],f32>, !torch.vtensor<[2,4,3],f32>, !torch.vtensor<[2,1,1,5],f32>, !torch.bool -> !torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.vtensor<[2,4,5,6],f32>
  return %0#0, %0#1, %0#2 : !torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.vtensor<[2,4,5,6],f32>
}

// A mask of bools isn't added to the scores: the scores that it excludes are
// filled.
// CHECK-LABEL: func.func @short
// CHECK-NOT: torch_ltc.short_attention
// CHECK: torch.aten.mul
// CHECK: torch.aten.bmm
// CHECK: torch.aten.logical_not
// CHECK: torch.aten.masked_fill
// CHECK: torch.aten.bmm
func.func @short(%q: !torch.vtensor<[2,4,3,8],f32>, %k: !torch.vtensor<[2,4,5,8],f32>, %v: !torch.vtensor<[2,4,5,8],f32>, %m: !torch.vtensor<[3,5],i1>) -> !torch.vtensor<[2,4,3,8],f32> {
  %false = torch.constant.bool false
  %scale = torch.constant.float 5.000000e-01
  %0 = torch.torch_ltc.short_attention %q, %k, %v, %m, %false, %scale : !torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.vtensor<[3,5],i1>, !torch.bool, !torch.float -> !torch.vtensor<[2,4,3,8],f32>
  return %0 : !torch.vtensor<[2,4,3,8],f32>
}

// The causal mask is a triangle that is added to the scores. The gradient
// recomputes the weights, so it has five products.
// CHECK-LABEL: func.func @trained
// CHECK-NOT: torch_ltc.trained_attention
// CHECK: torch.aten.bmm
// CHECK: torch.aten.triu
// CHECK: torch.aten.bmm
func.func @trained(%q: !torch.vtensor<[2,4,3,8],f32>, %k: !torch.vtensor<[2,4,5,8],f32>, %v: !torch.vtensor<[2,4,5,8],f32>) -> (!torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,3],f32>) {
  %none = torch.constant.none
  %true = torch.constant.bool true
  %scale = torch.constant.float 5.000000e-01
  %0:2 = torch.torch_ltc.trained_attention %q, %k, %v, %none, %true, %scale : !torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.none, !torch.bool, !torch.float -> !torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,3],f32>
  return %0#0, %0#1 : !torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,3],f32>
}

// CHECK-LABEL: func.func @trained_backward
// CHECK-NOT: torch_ltc.trained_attention
// CHECK-COUNT-5: torch.aten.bmm
// CHECK-NOT: torch.aten.bmm
func.func @trained_backward(%g: !torch.vtensor<[2,4,3,8],f32>, %q: !torch.vtensor<[2,4,3,8],f32>, %k: !torch.vtensor<[2,4,5,8],f32>, %v: !torch.vtensor<[2,4,5,8],f32>, %s: !torch.vtensor<[2,4,3],f32>) -> (!torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.vtensor<[2,4,5,8],f32>) {
  %none = torch.constant.none
  %true = torch.constant.bool true
  %scale = torch.constant.float 5.000000e-01
  %0:3 = torch.torch_ltc.trained_attention_backward %g, %q, %k, %v, %g, %s, %none, %true, %scale : !torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,3],f32>, !torch.none, !torch.bool, !torch.float -> !torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.vtensor<[2,4,5,8],f32>
  return %0#0, %0#1, %0#2 : !torch.vtensor<[2,4,3,8],f32>, !torch.vtensor<[2,4,5,8],f32>, !torch.vtensor<[2,4,5,8],f32>
}
