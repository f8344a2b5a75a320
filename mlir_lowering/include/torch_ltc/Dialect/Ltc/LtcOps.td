//===- LtcOps.td - Ops of the kernels stage ----------------*- tablegen -*-===//

#ifndef TORCH_LTC_DIALECT_LTC_LTCOPS_TD
#define TORCH_LTC_DIALECT_LTC_LTCOPS_TD

include "torch_ltc/Dialect/Ltc/LtcLibraryOps.td"

include "mlir/IR/SymbolInterfaces.td"

def Ltc_KernelCallOp : Ltc_Op<"kernel_call",
    [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "call to an outlined kernel";
  let description = [{
    Calls a private function that was outlined from the program. Operands are
    static-shape tensors or the program's scalar parameters (f64, i64);
    results are static-shape tensors.

    ```mlir
    %sum = ltc.kernel_call @k_add(%a, %b)
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee,
                       Variadic<AnyType>:$arguments);
  let results = (outs Variadic<AnyStaticShapeTensor>:$outputs);
  let assemblyFormat = [{
    $callee `(` $arguments `)` attr-dict
      `:` functional-type($arguments, $outputs)
  }];
}

def Ltc_JoinOp : Ltc_Op<"join", [Pure]> {
  let summary = "concatenation of tensors along the first dimension";
  let description = [{
    The parts may differ only in their first size. If possible, the buffer plan
    makes the parts' producers write directly into the whole; the runtime copies
    the other parts.

    ```mlir
    %whole = ltc.join %a, %b
        : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$parts);
  let results = (outs AnyStaticShapeTensor:$whole);
  let assemblyFormat = [{
    $parts attr-dict `:` functional-type($parts, $whole)
  }];
  let hasVerifier = 1;
}

def Ltc_CheckBoundsOp : Ltc_Op<"check_bounds",
    [Pure, AllTypesMatch<["indices", "checked"]>]> {
  let summary = "fails the run if an index is out of range";
  let description = [{
    Checks that each element is at least `lower` and below `upper`, and returns
    the operand, in the same memory; otherwise the run fails with an error. The
    op can be `Pure` because it has a result: ops that access a tensor at these
    indices use the result, and an unused check is removed. With `nonzero`, the
    elements are divisors of any integer type, which must not be zero, and the
    bounds are ignored.

    ```mlir
    %rows = ltc.check_bounds %ids in [0, 1000) : tensor<8xi64>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$indices,
                       I64Attr:$lower, I64Attr:$upper, UnitAttr:$nonzero);
  let results = (outs AnyStaticShapeTensor:$checked);
  let assemblyFormat = [{
    $indices `in` `[` $lower `,` $upper `)` attr-dict `:` type($indices)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

#endif // TORCH_LTC_DIALECT_LTC_LTCOPS_TD
