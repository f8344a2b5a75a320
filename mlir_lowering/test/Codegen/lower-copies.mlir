// RUN: ltc-opt %s --ltc-mlir-lower-copies | FileCheck %s
// RUN: ltc-opt %s --ltc-mlir-lower-copies --convert-linalg-to-loops | FileCheck %s --check-prefix=LOOPS

// A strided memref.copy becomes a linalg.copy, because MLIR would lower it to a
// call to the C runner library.
// CHECK-LABEL: func.func @copy
// CHECK-NOT: memref.copy
// CHECK: linalg.copy ins(%{{.+}} : memref<4x3xf32, strided<[8, 1], offset: 2>>) outs(%arg1 : memref<4x3xf32>)
// LOOPS-COUNT-2: scf.for
// LOOPS: memref.store
func.func @copy(%a: memref<4x8xf32>, %b: memref<4x3xf32>) {
  %part = memref.subview %a[0, 2] [4, 3] [1, 1]
      : memref<4x8xf32> to memref<4x3xf32, strided<[8, 1], offset: 2>>
  memref.copy %part, %b : memref<4x3xf32, strided<[8, 1], offset: 2>> to memref<4x3xf32>
  return
}
