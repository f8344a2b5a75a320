// RUN: ltc-opt %s --ltc-mlir-expand-math --split-input-file | FileCheck %s

// f32 functions become polynomials if these are accurate; sin stays a call,
// which LLVM vectorizes.
// CHECK-LABEL: func.func @functions
// CHECK-NOT: math.exp
// CHECK-NOT: math.tanh
// CHECK: math.sin
// CHECK-NOT: math.log
func.func @functions(%x: f32) -> (f32, f32, f32, f32) {
  %0 = math.exp %x : f32
  %1 = math.tanh %x : f32
  %2 = math.sin %x : f32
  %3 = math.log %x : f32
  return %0, %1, %2, %3 : f32, f32, f32, f32
}

// -----

// f64 functions don't become polynomials: log1p is expressed by log, and a
// quotient preserves the digits of small arguments.
// CHECK-LABEL: func.func @log1p
// CHECK-SAME: (%[[X:.+]]: f64)
// CHECK-NOT: math.log1p
// CHECK: %[[SUM:.+]] = arith.addf %[[X]]
// CHECK: %[[ROUNDED:.+]] = arith.subf %[[SUM]]
// CHECK: %[[RATIO:.+]] = arith.divf %[[X]], %[[ROUNDED]]
// CHECK: %[[LOG:.+]] = math.log %[[SUM]]
// CHECK: arith.mulf %[[LOG]], %[[RATIO]]
func.func @log1p(%x: f64) -> f64 {
  %0 = math.log1p %x : f64
  return %0 : f64
}

// -----

// CHECK-LABEL: func.func @expm1
// CHECK-SAME: (%[[X:.+]]: f64)
// CHECK-NOT: math.expm1
// CHECK: %[[EXP:.+]] = math.exp %[[X]]
// CHECK: %[[DIFFERENCE:.+]] = arith.subf %[[EXP]]
// CHECK: %[[LOG:.+]] = math.log %[[EXP]]
// CHECK: %[[RATIO:.+]] = arith.divf %[[X]], %[[LOG]]
// CHECK: arith.mulf %[[DIFFERENCE]], %[[RATIO]]
func.func @expm1(%x: f64) -> f64 {
  %0 = math.expm1 %x : f64
  return %0 : f64
}

// -----

// 16-bit floats are computed in f32 and rounded once.
// CHECK-LABEL: func.func @half
// CHECK-COUNT-2: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.addf %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @half(%x: f16, %y: f16) -> f16 {
  %0 = arith.addf %x, %y : f16
  return %0 : f16
}

// -----

// Conversions between bfloat16 and f32 become shifts, because a bfloat16 is the
// upper half of an f32.
// CHECK-LABEL: func.func @bfloat16
// CHECK: arith.extui %{{.*}} : i16 to i32
// CHECK: arith.shli
// CHECK: arith.mulf %{{.*}} : f32
// CHECK-NOT: arith.extf
// CHECK-NOT: arith.truncf
func.func @bfloat16(%x: bf16, %y: bf16) -> bf16 {
  %0 = arith.mulf %x, %y : bf16
  return %0 : bf16
}

// -----

// The CPU traps on x / 0 and on MIN / -1, so the divisor is replaced.
// CHECK-LABEL: func.func @divide
// CHECK-SAME: (%[[X:.+]]: i32, %[[Y:.+]]: i32)
// CHECK-DAG: %[[ZERO:.+]] = arith.constant 0 : i32
// CHECK-DAG: %[[ONE:.+]] = arith.constant 1 : i32
// CHECK: %[[DIVISOR:.+]] = arith.select %{{.+}}, %[[ONE]], %[[Y]]
// CHECK: %[[QUOTIENT:.+]] = arith.divsi %[[X]], %[[DIVISOR]]
// CHECK: %[[NEGATED:.+]] = arith.subi %[[ZERO]], %[[X]]
// CHECK: %[[SIGNED:.+]] = arith.select %{{.+}}, %[[NEGATED]], %[[QUOTIENT]]
// CHECK: arith.select %{{.+}}, %[[ZERO]], %[[SIGNED]]
func.func @divide(%x: i32, %y: i32) -> i32 {
  %0 = arith.divsi %x, %y : i32
  return %0 : i32
}

// -----

// A constant divisor other than 0 and -1 can't cause a trap and is unchanged.
// CHECK-LABEL: func.func @divide_by_seven
// CHECK-NOT: arith.select
// CHECK: arith.remsi
// CHECK-NOT: arith.select
func.func @divide_by_seven(%x: i32) -> i32 {
  %c7 = arith.constant 7 : i32
  %0 = arith.remsi %x, %c7 : i32
  return %0 : i32
}

// -----

// Unsigned division can't overflow, so only the divisor 0 is replaced.
// CHECK-LABEL: func.func @divide_unsigned
// CHECK-NOT: arith.subi
// CHECK: arith.divui
// CHECK-NOT: arith.subi
func.func @divide_unsigned(%x: i32, %y: i32) -> i32 {
  %0 = arith.divui %x, %y : i32
  return %0 : i32
}

// -----

// A denormal f32 result is computed from a shifted argument and then scaled,
// because the polynomial would return 0.
// CHECK-LABEL: func.func @denormal_exponential
// CHECK-SAME: (%[[X:.+]]: f32)
// CHECK: %[[SMALL:.+]] = arith.cmpf olt, %[[X]]
// CHECK: %[[SHIFTED:.+]] = arith.addf %[[X]]
// CHECK: arith.select %[[SMALL]], %[[SHIFTED]], %[[X]]
// CHECK: arith.bitcast
// CHECK: %[[POWER:.+]] = arith.mulf
// CHECK: %[[SCALED:.+]] = arith.mulf %[[POWER]]
// CHECK: arith.select %[[SMALL]], %[[SCALED]], %[[POWER]]
func.func @denormal_exponential(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  return %0 : f32
}

// -----

// A result that is only added to 1 is computed without the scaling.
// CHECK-LABEL: func.func @sigmoid
// CHECK-NOT: arith.cmpf olt, %arg0
// CHECK: return
func.func @sigmoid(%x: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %0 = math.exp %x : f32
  %1 = arith.addf %0, %one : f32
  return %1 : f32
}
