// RUN: ltc-opt %s --ltc-mlir-overlap-collectives --ltc-mlir-outline-kernels --ltc-mlir-schedule-kernels --ltc-mlir-plan-buffers --split-input-file | FileCheck %s

// The start and the wait of a collective share one range of memory: the product
// is written to the memory in which the sum over all ranks is returned.
// CHECK-LABEL: func.func @reduce
// CHECK: ltc.matmul {{.*}} {torch_ltc.places = [#ltc.place<output 1>]}
// CHECK: %[[B:.+]]:2 = ltc.host_call "torch_ltc::collective_begin"({{.*}}) {arguments = [si64, f32, "all_reduce", 0, array<i64: -1, 0>, array<i64: 8, 8>], {{.*}}torch_ltc.places = [#ltc.place<output 0>, #ltc.place<output 1>]}
// CHECK: ltc.host_call "torch_ltc::collective_finish"(%[[B]]#0, %[[B]]#1) {arguments = [si64, unit, f32], {{.*}}torch_ltc.places = [#ltc.place<output 1>]}
func.func @reduce(%order: tensor<1xi64>, %x: tensor<8x8xf32>) -> (tensor<1xi64>, tensor<8x8xf32>) {
  %a = ltc.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %o = ltc.host_call "torch_ltc::collective_start"(%order, %a) {arguments = [si64, f32, "all_reduce", 0, array<i64: -1, 0>, array<i64: 8, 8>], result_dtypes = [si64]} : (tensor<1xi64>, tensor<8x8xf32>) -> tensor<1xi64>
  %p = ltc.host_call "torch_ltc::collective_wait"(%o, %o) {arguments = [si64, si64, array<i64: 8, 8>, 6], result_dtypes = [f32]} : (tensor<1xi64>, tensor<1xi64>) -> tensor<8x8xf32>
  return %o, %p : tensor<1xi64>, tensor<8x8xf32>
}

// -----

// The collective's input is read afterwards, so the result has separate memory.
// CHECK-LABEL: func.func @keep
// CHECK: ltc.matmul {{.*}}#ltc.place<output 2>
// CHECK: "torch_ltc::collective_begin"{{.*}}torch_ltc.places = [#ltc.place<output 0>, #ltc.place<output 1>]
// CHECK: "torch_ltc::collective_finish"{{.*}}torch_ltc.places = [#ltc.place<output 1>]
func.func @keep(%order: tensor<1xi64>, %x: tensor<8x8xf32>) -> (tensor<1xi64>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %a = ltc.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %o:2 = ltc.host_call "torch_ltc::collective"(%order, %a) {arguments = [si64, f32, "all_reduce", 0, array<i64: -1, 0>, array<i64: 8, 8>], result_dtypes = [si64, f32]} : (tensor<1xi64>, tensor<8x8xf32>) -> (tensor<1xi64>, tensor<8x8xf32>)
  return %o#0, %o#1, %a : tensor<1xi64>, tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// The value of a donated parameter is summed in the parameter's memory.
// CHECK-LABEL: func.func @parameter
// CHECK: "torch_ltc::collective_begin"{{.*}}#ltc.place<parameter 1>]
// CHECK: "torch_ltc::collective_finish"{{.*}}torch_ltc.places = [#ltc.place<parameter 1>]
func.func @parameter(%order: tensor<1xi64>, %x: tensor<8x8xf32> {torch_ltc.donatable})
    -> (tensor<1xi64>, tensor<8x8xf32> {torch_ltc.updates = 1 : i64}) {
  %o:2 = ltc.host_call "torch_ltc::collective"(%order, %x) {arguments = [si64, f32, "all_reduce", 0, array<i64: -1, 0>, array<i64: 8, 8>], result_dtypes = [si64, f32]} : (tensor<1xi64>, tensor<8x8xf32>) -> (tensor<1xi64>, tensor<8x8xf32>)
  return %o#0, %o#1 : tensor<1xi64>, tensor<8x8xf32>
}

// -----

// The second layer's weight is gathered while the first layer is computed; the
// third layer's weight is gathered later. No op reads the third weight, but all
// ranks must take part in its collective.
// CHECK-LABEL: func.func @gather
// CHECK: %[[A:.+]]:2 = ltc.host_call "torch_ltc::collective_begin"(%arg0, %arg2)
// CHECK: %[[WA:.+]] = ltc.host_call "torch_ltc::collective_finish"(%[[A]]#0, %arg2, %[[A]]#1)
// CHECK: %[[B:.+]]:2 = ltc.host_call "torch_ltc::collective_begin"(%[[A]]#0, %arg3)
// CHECK: %[[X:.+]] = ltc.matmul %arg1, %[[WA]]
// CHECK: %[[WB:.+]] = ltc.host_call "torch_ltc::collective_finish"(%[[B]]#0, %arg3, %[[B]]#1)
// CHECK: %[[C:.+]]:2 = ltc.host_call "torch_ltc::collective_begin"(%[[B]]#0, %arg4)
// CHECK: ltc.matmul %[[X]], %[[WB]]
// CHECK: ltc.host_call "torch_ltc::collective_finish"(%[[C]]#0, %arg4, %[[C]]#1)
func.func @gather(%order: tensor<1xi64>, %x: tensor<8x8xf32>, %a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>) -> (tensor<1xi64>, tensor<8x8xf32>) {
  %wa:2 = ltc.host_call "torch_ltc::collective"(%order, %a) {arguments = [si64, f32, "all_gather", 0, array<i64: -1>, array<i64: 8, 8>], result_dtypes = [si64, f32]} : (tensor<1xi64>, tensor<4x8xf32>) -> (tensor<1xi64>, tensor<8x8xf32>)
  %wb:2 = ltc.host_call "torch_ltc::collective"(%wa#0, %b) {arguments = [si64, f32, "all_gather", 0, array<i64: -1>, array<i64: 8, 8>], result_dtypes = [si64, f32]} : (tensor<1xi64>, tensor<4x8xf32>) -> (tensor<1xi64>, tensor<8x8xf32>)
  %wc:2 = ltc.host_call "torch_ltc::collective"(%wb#0, %c) {arguments = [si64, f32, "all_gather", 0, array<i64: -1>, array<i64: 8, 8>], result_dtypes = [si64, f32]} : (tensor<1xi64>, tensor<4x8xf32>) -> (tensor<1xi64>, tensor<8x8xf32>)
  %y = ltc.matmul %x, %wa#1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %z = ltc.matmul %y, %wb#1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %wc#0, %z : tensor<1xi64>, tensor<8x8xf32>
}

// -----

// The wait for a message without a result stays an "await" collective: it isn't
// split into `collective_begin` and `collective_finish`.
// CHECK-LABEL: func.func @send
// CHECK: "torch_ltc::collective_start"
// CHECK: "torch_ltc::collective"{{.*}}"await"
func.func @send(%order: tensor<1xi64>, %x: tensor<8xf32>) -> tensor<1xi64> {
  %o = ltc.host_call "torch_ltc::collective_start"(%order, %x) {arguments = [si64, f32, "send", 0, array<i64: -1, 1, 0>, array<i64: 0>], result_dtypes = [si64]} : (tensor<1xi64>, tensor<8xf32>) -> tensor<1xi64>
  %p:2 = ltc.host_call "torch_ltc::collective"(%o, %o) {arguments = [si64, si64, "await", 0, array<i64: -1>, array<i64: 0>], result_dtypes = [si64, si64]} : (tensor<1xi64>, tensor<1xi64>) -> (tensor<1xi64>, tensor<0xi64>)
  return %p#0 : tensor<1xi64>
}

// -----

// Both collectives start before the wait for the first one.
// CHECK-LABEL: func.func @two
// CHECK: %[[A:.+]]:2 = ltc.host_call "torch_ltc::collective_begin"(%arg0, %arg1)
// CHECK: %[[B:.+]]:2 = ltc.host_call "torch_ltc::collective_begin"(%[[A]]#0, %arg2)
// CHECK: "torch_ltc::collective_finish"(%[[A]]#0, %[[A]]#1)
// CHECK: "torch_ltc::collective_finish"(%[[B]]#0, %[[B]]#1)
// CHECK-NOT: collective_wait
func.func @two(%order: tensor<1xi64>, %a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<1xi64>, tensor<8xf32>, tensor<8xf32>) {
  %o0 = ltc.host_call "torch_ltc::collective_start"(%order, %a) {arguments = [si64, f32, "all_reduce", 0, array<i64: -1, 0>, array<i64: 8>], result_dtypes = [si64]} : (tensor<1xi64>, tensor<8xf32>) -> tensor<1xi64>
  %p = ltc.host_call "torch_ltc::collective_wait"(%o0, %o0) {arguments = [si64, si64, array<i64: 8>, 6], result_dtypes = [f32]} : (tensor<1xi64>, tensor<1xi64>) -> tensor<8xf32>
  %o1 = ltc.host_call "torch_ltc::collective_start"(%o0, %b) {arguments = [si64, f32, "all_reduce", 0, array<i64: -1, 0>, array<i64: 8>], result_dtypes = [si64]} : (tensor<1xi64>, tensor<8xf32>) -> tensor<1xi64>
  %q = ltc.host_call "torch_ltc::collective_wait"(%o1, %o1) {arguments = [si64, si64, array<i64: 8>, 6], result_dtypes = [f32]} : (tensor<1xi64>, tensor<1xi64>) -> tensor<8xf32>
  return %o1, %p, %q : tensor<1xi64>, tensor<8xf32>, tensor<8xf32>
}
