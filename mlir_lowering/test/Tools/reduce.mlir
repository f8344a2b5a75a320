// RUN: ltc-reduce %s --ltc-reduce-program=test=%S/Inputs/has-tanh.sh | FileCheck %s

// Of four ops, only the one that the script searches for remains.

// CHECK-LABEL: func.func @step
// CHECK-NOT: torch.aten.exp
// CHECK-NOT: torch.aten.mm
// CHECK: torch.aten.tanh
// CHECK-NOT: torch.aten.relu
// CHECK: return
func.func @step(%x: !torch.vtensor<[4,4],f32>, %w: !torch.vtensor<[4,3],f32>)
    -> !torch.vtensor<[4,3],f32> {
  %0 = torch.aten.exp %x : !torch.vtensor<[4,4],f32> -> !torch.vtensor<[4,4],f32>
  %1 = torch.aten.mm %0, %w : !torch.vtensor<[4,4],f32>, !torch.vtensor<[4,3],f32> -> !torch.vtensor<[4,3],f32>
  %2 = torch.aten.tanh %1 : !torch.vtensor<[4,3],f32> -> !torch.vtensor<[4,3],f32>
  %3 = torch.aten.relu %2 : !torch.vtensor<[4,3],f32> -> !torch.vtensor<[4,3],f32>
  return %3 : !torch.vtensor<[4,3],f32>
}

// An error is reported if the script doesn't find the original module
// interesting.

// RUN: not ltc-reduce %s --ltc-reduce-program=test=/bin/true 2>&1 | FileCheck %s --check-prefix=DULL
// DULL: '/bin/true' doesn't exit with 1 for the unchanged module

// RUN: not ltc-reduce %s --ltc-reduce-program=test=%t.nothing 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not ltc-reduce %s --ltc-reduce-program 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: can't be run: give an executable file as --ltc-reduce-program=test=FILE
