// RUN: not ltc-opt %s --pass-pipeline='builtin.module(func.func(ltc-mlir-decompose-ops{legal-ops=aten.softmx}))' 2>&1 | FileCheck %s

// CHECK: legal-ops names 'aten.softmx', which the torch dialect doesn't define
func.func @nothing() { return }
