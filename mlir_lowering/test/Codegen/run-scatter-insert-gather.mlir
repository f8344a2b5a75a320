// RUN: ltc-run %s | FileCheck %s
// RUN: ltc-run %s --check

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK: output 0 [3, 2]: 1 2 0 0 8 10
// CHECK: output 1 [2, 2]: 5 6 1 2
// CHECK: output 2 [2, 4]: 1 2 9 9 3 4 9 9
// CHECK: output 3 [2]: 3 0
// CHECK: output 4 [3, 2] forwarded 0: 1 2 3 4 5 6
// CHECK: output 5 [2, 2]: 3 4 5 6
func.func @step(%x: tensor<3x2xf32> {run.value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>},
                %index: tensor<3xi64> {run.value = dense<[0, 2, 2]> : tensor<3xi64>})
    -> (tensor<3x2xf32>, tensor<2x2xf32>, tensor<2x4xf32>, tensor<2xi64>, tensor<3x2xf32>, tensor<2x2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %nine = arith.constant 9.0 : f32
  // Adds row i of x to row index[i] of a matrix of zeros.
  %e = tensor.empty() : tensor<3x2xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  %scattered = scf.for %i = %c0 to %c3 step %c1 iter_args(%rows = %z) -> tensor<3x2xf32> {
    %to64 = tensor.extract %index[%i] : tensor<3xi64>
    %to = arith.index_cast %to64 : i64 to index
    %r = scf.for %j = %c0 to %c2 step %c1 iter_args(%acc = %rows) -> tensor<3x2xf32> {
      %v = tensor.extract %x[%i, %j] : tensor<3x2xf32>
      %o = tensor.extract %acc[%to, %j] : tensor<3x2xf32>
      %s = arith.addf %v, %o : f32
      %n = tensor.insert %s into %acc[%to, %j] : tensor<3x2xf32>
      scf.yield %n : tensor<3x2xf32>
    }
    scf.yield %r : tensor<3x2xf32>
  }
  // Gathers rows 2 and 0 of x.
  %rowsOf = arith.constant dense<[2, 0]> : tensor<2xi64>
  %e2 = tensor.empty() : tensor<2x2xf32>
  %gathered = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%rowsOf : tensor<2xi64>) outs(%e2 : tensor<2x2xf32>) {
  ^bb0(%r: i64, %o: f32):
    %ri = arith.index_cast %r : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%ri, %j] : tensor<3x2xf32>
    linalg.yield %v : f32
  } -> tensor<2x2xf32>
  // Inserts two columns of x next to columns of nines.
  %head = tensor.extract_slice %x[0, 0] [2, 2] [1, 1] : tensor<3x2xf32> to tensor<2x2xf32>
  %e4 = tensor.empty() : tensor<2x4xf32>
  %n4 = linalg.fill ins(%nine : f32) outs(%e4 : tensor<2x4xf32>) -> tensor<2x4xf32>
  %wide = tensor.insert_slice %head into %n4[0, 0] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<2x4xf32>
  // The result of an integer division by zero is 0.
  %dividend = arith.constant dense<[7, 7]> : tensor<2xi64>
  %divisor = arith.constant dense<[2, 0]> : tensor<2xi64>
  %e1 = tensor.empty() : tensor<2xi64>
  %quotient = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                              iterator_types = ["parallel"]}
      ins(%dividend, %divisor : tensor<2xi64>, tensor<2xi64>) outs(%e1 : tensor<2xi64>) {
  ^bb0(%a: i64, %b: i64, %o: i64):
    %d = arith.divsi %a, %b : i64
    linalg.yield %d : i64
  } -> tensor<2xi64>
  %tail = tensor.extract_slice %x[1, 0] [2, 2] [1, 1] : tensor<3x2xf32> to tensor<2x2xf32>
  return %scattered, %gathered, %wide, %quotient, %x, %tail
      : tensor<3x2xf32>, tensor<2x2xf32>, tensor<2x4xf32>, tensor<2xi64>, tensor<3x2xf32>, tensor<2x2xf32>
}
