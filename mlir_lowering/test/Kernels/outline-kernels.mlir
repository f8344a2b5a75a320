// RUN: ltc-opt %s -ltc-mlir-outline-kernels -ltc-mlir-deduplicate-kernels -split-input-file | FileCheck %s

#id = affine_map<(i) -> (i)>

// Equal ops share a kernel, into which scalar arithmetic is cloned; reshapes
// stay in the program.
// CHECK-LABEL: func.func @step
// CHECK-SAME: (%[[A:.+]]: tensor<8xf32>, %[[B:.+]]: tensor<8xf32>, %[[LR:.+]]: f64)
// CHECK-NEXT: %[[P:.+]] = ltc.kernel_call @[[K:.+]](%[[A]], %[[LR]]) : (tensor<8xf32>, f64) -> tensor<8xf32>
// CHECK-NEXT: %[[Q:.+]] = ltc.kernel_call @[[K]](%[[B]], %[[LR]])
// CHECK-NEXT: %[[R:.+]] = tensor.expand_shape %[[Q]]
// CHECK-NEXT: return %[[P]], %[[R]]
// CHECK: func.func private @[[K]](%{{.*}}: tensor<8xf32>, %[[S:.+]]: f64)
// CHECK: arith.truncf %[[S]]
// CHECK-NOT: func.func
func.func @step(%a: tensor<8xf32>, %b: tensor<8xf32>, %lr: f64) -> (tensor<8xf32>, tensor<2x4xf32>) {
  %s = arith.truncf %lr : f64 to f32
  %e = tensor.empty() : tensor<8xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.mulf %x, %s : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%b : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.mulf %x, %s : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %r = tensor.expand_shape %q [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  return %p, %r : tensor<8xf32>, tensor<2x4xf32>
}

// -----

// A concatenation is one kernel; a contiguous slice stays in the program.
// CHECK-LABEL: func.func @concat
// CHECK-NEXT: %[[S:.+]] = tensor.extract_slice
// CHECK-NEXT: %[[C:.+]] = ltc.kernel_call @[[K:.+]](%{{.+}}, %[[S]])
// CHECK-NEXT: return %[[C]]
// CHECK: func.func private @[[K]]
// CHECK-COUNT-2: tensor.insert_slice
func.func @concat(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) -> tensor<2x8xf32> {
  %s = tensor.extract_slice %b[2, 0] [2, 5] [1, 1] : tensor<4x5xf32> to tensor<2x5xf32>
  %e = tensor.empty() : tensor<2x8xf32>
  %1 = tensor.insert_slice %a into %e[0, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<2x8xf32>
  %2 = tensor.insert_slice %s into %1[0, 3] [2, 5] [1, 1] : tensor<2x5xf32> into tensor<2x8xf32>
  return %2 : tensor<2x8xf32>
}

// -----

// A result of the program needs memory even if it is constant.
// CHECK-LABEL: func.func @constants
// CHECK: %[[Z:.+]] = ltc.kernel_call @{{.+}}() : () -> tensor<4xf32>
// CHECK: %[[D:.+]] = arith.constant dense<[1, 2]>
// CHECK: return %[[Z]], %[[D]]
func.func @constants() -> (tensor<4xf32>, tensor<2xi64>) {
  %z = arith.constant dense<0.0> : tensor<4xf32>
  %d = arith.constant dense<[1, 2]> : tensor<2xi64>
  return %z, %d : tensor<4xf32>, tensor<2xi64>
}

// -----

#id = affine_map<(i) -> (i)>

// Bounds checks come first, so that a run fails before it writes anything.
// CHECK-LABEL: func.func @checks_first
// CHECK-SAME: (%{{.+}}: tensor<8xf32>, %[[I:.+]]: tensor<8xi64>)
// CHECK-NEXT: %[[C:.+]] = ltc.check_bounds %[[I]] in[0, 8)
// CHECK-NEXT: ltc.kernel_call
// CHECK-NEXT: ltc.kernel_call @{{.+}}(%[[C]])
func.func @checks_first(%a: tensor<8xf32>, %i: tensor<8xi64>) -> (tensor<8xf32>, tensor<8xi64>) {
  %e = tensor.empty() : tensor<8xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.addf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %c = ltc.check_bounds %i in [0, 8) : tensor<8xi64>
  %f = tensor.empty() : tensor<8xi64>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%c : tensor<8xi64>) outs(%f : tensor<8xi64>) {
  ^bb0(%x: i64, %o: i64):
    %y = arith.addi %x, %x : i64
    linalg.yield %y : i64
  } -> tensor<8xi64>
  return %p, %q : tensor<8xf32>, tensor<8xi64>
}

// -----

#id = affine_map<(i) -> (i)>

// The new value of %w is computed after the other reader of the old value.
// CHECK-LABEL: func.func @update_last
// CHECK-SAME: (%[[W:.+]]: tensor<8xf32>
// CHECK: %[[Y:.+]] = ltc.kernel_call @{{.+}}(%[[W]])
// CHECK-NEXT: %[[N:.+]] = ltc.kernel_call @{{.+}}(%[[W]])
// CHECK-NEXT: return %[[N]], %[[Y]]
func.func @update_last(%w: tensor<8xf32>) -> (tensor<8xf32> {torch_ltc.updates = 0 : i64}, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%w : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.addf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%w : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.mulf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  return %p, %q : tensor<8xf32>, tensor<8xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// Kernels that need no result of other processes come before the first wait,
// and those that need only the first result before the second wait.
// CHECK-LABEL: func.func @waits
// CHECK: ltc.host_call "torch_ltc::collective_start"
// CHECK: ltc.host_call "torch_ltc::collective_start"
// CHECK: ltc.kernel_call @[[K:.+]](%arg3)
// CHECK: %[[P:.+]] = ltc.host_call "torch_ltc::collective_wait"
// CHECK: ltc.kernel_call @[[K]](%[[P]])
// CHECK: %[[Q:.+]] = ltc.host_call "torch_ltc::collective_wait"
// CHECK: ltc.kernel_call @[[K]](%[[Q]])
func.func @waits(%order: tensor<1xi64>, %a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>) -> (tensor<1xi64>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %o0 = ltc.host_call "torch_ltc::collective_start"(%order, %a) {arguments = [si64, f32, "all_reduce", 0, array<i64: -1, 0>, array<i64: 8>], result_dtypes = [si64]} : (tensor<1xi64>, tensor<8xf32>) -> tensor<1xi64>
  %p = ltc.host_call "torch_ltc::collective_wait"(%o0, %o0) {arguments = [si64, si64, array<i64: 8>, 6], result_dtypes = [f32]} : (tensor<1xi64>, tensor<1xi64>) -> tensor<8xf32>
  %o1 = ltc.host_call "torch_ltc::collective_start"(%o0, %b) {arguments = [si64, f32, "all_reduce", 0, array<i64: -1, 0>, array<i64: 8>], result_dtypes = [si64]} : (tensor<1xi64>, tensor<8xf32>) -> tensor<1xi64>
  %q = ltc.host_call "torch_ltc::collective_wait"(%o1, %o1) {arguments = [si64, si64, array<i64: 8>, 6], result_dtypes = [f32]} : (tensor<1xi64>, tensor<1xi64>) -> tensor<8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %u = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%p : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.mulf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%q : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.mulf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%c : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.mulf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  return %o1, %u, %v, %w : tensor<1xi64>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
