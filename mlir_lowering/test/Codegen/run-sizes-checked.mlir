// The program's constant equals s0 at the first three stand-ins, but not at the
// last one, which checks the expression that was fitted to the others.
// RUN: not ltc-run %s --sizes=5 2>&1 | FileCheck %s
// CHECK: the program has no form for all sizes: a number is 16549, 26177, 45043 and -1640881857211 at the stand-ins

#row = affine_map<(i) -> (i)>

func.func @step(%x: tensor<$(s0)xi64>) -> tensor<$(s0)xi64> {
  %e = tensor.empty() : tensor<$(s0)xi64>
  %r = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
      ins(%x : tensor<$(s0)xi64>) outs(%e : tensor<$(s0)xi64>) {
    ^bb0(%a: i64, %o: i64):
      %c = arith.constant $(s0*s0*s0+-87769*s0*s0+2357710392*s0+-19512770521439) : i64
      %s = arith.addi %a, %c : i64
      linalg.yield %s : i64
  } -> tensor<$(s0)xi64>
  return %r : tensor<$(s0)xi64>
}
