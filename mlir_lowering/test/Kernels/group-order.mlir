// RUN: ltc-opt %s --ltc-torch-to-contract --ltc-torch-to-linalg --ltc-linalg-to-kernels | FileCheck %s

// A kernel has the ops of a merged group in the order in which they were fitted
// into one fusion domain. In the program's order, they wouldn't fit: the
// normalized input's loop over the 2 channels of a group would be mapped to the
// domain's factor for the batch.

// CHECK-LABEL: func.func private @k_
// CHECK-NOT: arith.subf
// CHECK: arith.divf
// CHECK: arith.subf
func.func @group_norm_gradients(%t: !torch.vtensor<[2,8,6,6],f32>, %y: !torch.vtensor<[2,8,6,6],f32>, %x: !torch.vtensor<[2,8,6,6],f32>,
    %mean: !torch.vtensor<[2,4],f32>, %rstd: !torch.vtensor<[2,4],f32>, %w: !torch.vtensor<[8],f32>)
    -> (!torch.vtensor<[2,8,6,6],f32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) {
  %int2 = torch.constant.int 2
  %int8 = torch.constant.int 8
  %int36 = torch.constant.int 36
  %int4 = torch.constant.int 4
  %true = torch.constant.bool true
  %mask = torch.prim.ListConstruct %true, %true, %true : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  %g = torch.aten.mul.Tensor %t, %y : !torch.vtensor<[2,8,6,6],f32>, !torch.vtensor<[2,8,6,6],f32> -> !torch.vtensor<[2,8,6,6],f32>
  %0:3 = torch.aten.native_group_norm_backward %g, %x, %mean, %rstd, %w, %int2, %int8, %int36, %int4, %mask : !torch.vtensor<[2,8,6,6],f32>, !torch.vtensor<[2,8,6,6],f32>, !torch.vtensor<[2,4],f32>, !torch.vtensor<[2,4],f32>, !torch.vtensor<[8],f32>, !torch.int, !torch.int, !torch.int, !torch.int, !torch.list<bool> -> !torch.vtensor<[2,8,6,6],f32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>
  return %0#0, %0#1, %0#2 : !torch.vtensor<[2,8,6,6],f32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>
}
