// RUN: ltc-run %s | FileCheck %s

#id = affine_map<(i) -> (i)>

// Computes the sign bits of bfloat16 results of a loop. Without the workaround
// in lib/Codegen/BfloatSigns.cpp, all of them are 0 with LLVM 22.
// CHECK: output 0 [4]: 1 0 1 0
func.func @step() -> tensor<4xi1> {
  %x = arith.constant dense<[[-1.5, -2.0], [2.0, -1.0], [-4.0, -3.0], [0.5, 8.0]]> : tensor<4x2xbf16>
  %least = arith.constant 0xFF80 : bf16
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<4xi1>
  %signs = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]}
      outs(%e : tensor<4xi1>) {
  ^bb0(%o: i1):
    %i = linalg.index 0 : index
    %largest = scf.for %j = %c0 to %c2 step %c1 iter_args(%m = %least) -> (bf16) {
      %a = tensor.extract %x[%i, %j] : tensor<4x2xbf16>
      %more = arith.cmpf ogt, %a, %m : bf16
      %next = arith.select %more, %a, %m : bf16
      scf.yield %next : bf16
    }
    %wide = arith.extf %largest : bf16 to f32
    %bits = arith.bitcast %wide : f32 to i32
    %negative = arith.cmpi slt, %bits, %zero : i32
    linalg.yield %negative : i1
  } -> tensor<4xi1>
  return %signs : tensor<4xi1>
}
