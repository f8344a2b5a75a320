// RUN: ltc-opt %s --ltc-mlir-overlap-collectives --ltc-mlir-outline-kernels --ltc-mlir-schedule-kernels --ltc-mlir-plan-buffers --split-input-file | FileCheck %s

// A start and its wait exchange one range of memory: the product is written
// where the sum of all ranks is returned.
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

// The input is read afterwards, so the result needs memory of its own.
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

// What the parameter held is summed in its own memory.
// CHECK-LABEL: func.func @parameter
// CHECK: "torch_ltc::collective_begin"{{.*}}#ltc.place<parameter 1>]
// CHECK: "torch_ltc::collective_finish"{{.*}}torch_ltc.places = [#ltc.place<parameter 1>]
func.func @parameter(%order: tensor<1xi64>, %x: tensor<8x8xf32> {torch_ltc.donatable})
    -> (tensor<1xi64>, tensor<8x8xf32> {torch_ltc.updates = 1 : i64}) {
  %o:2 = ltc.host_call "torch_ltc::collective"(%order, %x) {arguments = [si64, f32, "all_reduce", 0, array<i64: -1, 0>, array<i64: 8, 8>], result_dtypes = [si64, f32]} : (tensor<1xi64>, tensor<8x8xf32>) -> (tensor<1xi64>, tensor<8x8xf32>)
  return %o#0, %o#1 : tensor<1xi64>, tensor<8x8xf32>
}

// -----

// The second layer is gathered while the first one is computed, but the third
// one isn't yet. Nobody reads the third one; the ranks need it.
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

// A message without a result is only awaited.
// CHECK-LABEL: func.func @send
// CHECK: "torch_ltc::collective_start"
// CHECK: "torch_ltc::collective"{{.*}}"await"
func.func @send(%order: tensor<1xi64>, %x: tensor<8xf32>) -> tensor<1xi64> {
  %o = ltc.host_call "torch_ltc::collective_start"(%order, %x) {arguments = [si64, f32, "send", 0, array<i64: -1, 1, 0>, array<i64: 0>], result_dtypes = [si64]} : (tensor<1xi64>, tensor<8xf32>) -> tensor<1xi64>
  %p:2 = ltc.host_call "torch_ltc::collective"(%o, %o) {arguments = [si64, si64, "await", 0, array<i64: -1>, array<i64: 0>], result_dtypes = [si64, si64]} : (tensor<1xi64>, tensor<1xi64>) -> (tensor<1xi64>, tensor<0xi64>)
  return %p#0 : tensor<1xi64>
}
