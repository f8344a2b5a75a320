// RUN: ltc-opt %s | ltc-opt | FileCheck %s

// CHECK-LABEL: func.func @constants
// CHECK: torch.constant.none
// CHECK: %int-3 = torch.constant.int -3
// CHECK: %float = torch.constant.float 5.000000e-01
// CHECK: %true = torch.constant.bool true
// CHECK: torch.constant.str "tanh"
// CHECK: torch.constant.device "cpu"
// CHECK: torch.vtensor.literal(dense<[1, 2]> : tensor<2xsi64>) : !torch.vtensor<[2],si64>
func.func @constants() {
  %none = torch.constant.none
  %int = torch.constant.int -3
  %float = torch.constant.float 0.5
  %true = torch.constant.bool true
  %str = torch.constant.str "tanh"
  %device = torch.constant.device "cpu"
  %0 = torch.vtensor.literal(dense<[1, 2]> : tensor<2xsi64>) : !torch.vtensor<[2],si64>
  return
}

// CHECK-LABEL: func.func @types
// CHECK-SAME: !torch.vtensor<[2,?],bf16>
// CHECK-SAME: !torch.vtensor<[],i1>
// CHECK-SAME: !torch.vtensor<*,ui8>
// CHECK-SAME: !torch.vtensor<[3],unk>
// CHECK-SAME: !torch.vtensor,
// CHECK-SAME: !torch.list<vtensor<[2],f32>>
// CHECK-SAME: !torch.list<optional<vtensor>>
// CHECK-SAME: !torch.optional<int>
// CHECK-SAME: !torch.number
func.func @types(%0: !torch.vtensor<[2,?],bf16>, %1: !torch.vtensor<[],i1>,
    %2: !torch.vtensor<*,ui8>, %3: !torch.vtensor<[3],unk>, %4: !torch.vtensor,
    %5: !torch.list<vtensor<[2],f32>>, %6: !torch.list<optional<vtensor>>,
    %7: !torch.optional<int>, %8: !torch.number) {
  return
}

// CHECK-LABEL: func.func @operators
func.func @operators(%a: !torch.vtensor<[2],f32> {torch_ltc.donatable, torch_ltc.name = "weight"},
                     %lr: !torch.float) -> !torch.vtensor<[2],f32> {
  %int1 = torch.constant.int 1
  %none = torch.constant.none
  // CHECK: torch.prim.NumToTensor.Scalar %{{.*}} : !torch.float -> !torch.vtensor<[],f32>
  %n = torch.prim.NumToTensor.Scalar %lr : !torch.float -> !torch.vtensor<[],f32>
  // CHECK: torch.aten.add.Tensor %{{.*}}, %{{.*}}, %{{.*}} : !torch.vtensor<[2],f32>, !torch.vtensor<[],f32>, !torch.int -> !torch.vtensor<[2],f32>
  %0 = torch.aten.add.Tensor %a, %n, %int1 : !torch.vtensor<[2],f32>, !torch.vtensor<[],f32>, !torch.int -> !torch.vtensor<[2],f32>
  // CHECK: torch.prim.ListConstruct{{ +}}: () -> !torch.list<int>
  %empty = torch.prim.ListConstruct : () -> !torch.list<int>
  // CHECK: torch.prim.ListConstruct %{{.*}}, %{{.*}} : (!torch.none, !torch.vtensor<[2],f32>) -> !torch.list<optional<vtensor>>
  %list = torch.prim.ListConstruct %none, %a : (!torch.none, !torch.vtensor<[2],f32>) -> !torch.list<optional<vtensor>>
  // CHECK: torch.operator "torch.aten.foo"(%{{.*}}, %{{.*}}) : (!torch.vtensor<[2],f32>, !torch.int) -> !torch.vtensor<[2],f32>
  %1 = torch.operator "torch.aten.foo"(%0, %int1) : (!torch.vtensor<[2],f32>, !torch.int) -> !torch.vtensor<[2],f32>
  return %1 : !torch.vtensor<[2],f32>
}
