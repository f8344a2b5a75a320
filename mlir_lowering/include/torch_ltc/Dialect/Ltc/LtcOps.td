//===- LtcOps.td - Ops of the kernels stage ----------------*- tablegen -*-===//

#ifndef TORCH_LTC_DIALECT_LTC_LTCOPS_TD
#define TORCH_LTC_DIALECT_LTC_LTCOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Ltc_Dialect : Dialect {
  let name = "ltc";
  let cppNamespace = "::mlir::torch_ltc::ltc";
  let summary = "Calls of generated kernels and of library functions";
}

class Ltc_Op<string mnemonic, list<Trait> traits = []>
    : Op<Ltc_Dialect, mnemonic, traits>;

def Ltc_KernelCallOp : Ltc_Op<"kernel_call",
    [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "call of an outlined kernel";
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

def Ltc_LibraryCallOp : Ltc_Op<"library_call", [Pure]> {
  let summary = "call of a function of the runtime's math library";
  let description = [{
    Names and attributes (integer lists are `array<i64: ...>`, one element per
    spatial dimension; numbers are i64; all sizes are those of the types):

    * `"matmul"` (a, b [, bias]) -> c, all of one element type.
      a: [m, k] or [batch, m, k]; b: [k, n] or [batch, k, n]; c: [m, n] or
      [batch, m, n]; bias: [n]. Optional unit attributes: `transpose_a` (a is
      stored [.., k, m]), `transpose_b` (b is stored [.., n, k]). A rank-2 a or
      b beside a rank-3 c is the same matrix for the whole batch.
    * `"convolution_forward"` (input, weight [, bias]) -> output
    * `"convolution_backward_input"` (grad_output, weight) -> grad_input
    * `"convolution_backward_weight"` (grad_output, input)
      -> grad_weight [, grad_bias]

      Required of all three: `stride`, `padding`, `dilation`, `groups`.
      input: [n, c, spatial...], weight: [o, c / groups, spatial...],
      output: [n, o, spatial...], bias: [o]; 1 to 3 spatial dimensions.

    * `"attention"` (query, key, value [, mask]) -> output, log_sum
    * `"attention_backward"` (grad_output, query, key, value, output, log_sum
      [, mask]) -> grad_query, grad_key, grad_value

      output is softmax(query * key^T + mask) * value, and log_sum the log of
      the sum of exp(score), infinite where a query sees no key. All are f32.
      query: [batch, heads, length, width], key: [batch, heads, keys, width],
      value: [batch, heads, keys, outputs], mask: [batch or 1, heads or 1,
      length or 1, keys]. Optional unit attribute `causal`: a query sees the
      keys up to its own place.

    * `"host"` (tensors) -> tensors: an op that PyTorch's own CPU kernel
      computes. Attributes: `op` ("aten::topk"), `arguments`, one element an
      argument of the op: unit (none), a number, a string, an integer or
      floating-point list (`array<i64>`, `array<f64>`), a type (the next
      operand, of this dtype), or an array of types (a list of operands);
      `results`, the results' dtypes. Types have torch's signs (`ui8`).

    ```mlir
    %y = ltc.library_call "convolution_forward"(%x, %w)
        {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>,
         dilation = array<i64: 1, 1>, groups = 1 : i64}
        : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name,
                       Variadic<AnyStaticShapeTensor>:$arguments);
  let results = (outs Variadic<AnyStaticShapeTensor>:$outputs);
  let assemblyFormat = [{
    $name `(` $arguments `)` attr-dict
      `:` functional-type($arguments, $outputs)
  }];
  let extraClassDeclaration = [{
    bool isMatmul() { return getName() == "matmul"; }
    bool isConvolution() { return getName().starts_with("convolution_"); }
    bool isAttention() { return getName().starts_with("attention"); }
    bool isHost() { return getName() == "host"; }
    /// Unit attributes of a matmul.
    bool isTransposeA() { return (*this)->hasAttr("transpose_a"); }
    bool isTransposeB() { return (*this)->hasAttr("transpose_b"); }
    /// An integer list of a convolution; verified to be there.
    ::llvm::ArrayRef<int64_t> getList(::llvm::StringRef list) {
      return (*this)->getAttrOfType<::mlir::DenseI64ArrayAttr>(list).asArrayRef();
    }
    int64_t getGroups() {
      return (*this)->getAttrOfType<::mlir::IntegerAttr>("groups").getInt();
    }
  }];
  let hasVerifier = 1;
}

def Ltc_JoinOp : Ltc_Op<"join", [Pure]> {
  let summary = "tensors as consecutive ranges of one";
  let description = [{
    Concatenates along the first dimension; the other sizes are equal. The
    buffer plan lets the parts' producers write into the whole where it can, and
    copies the other parts.

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
  let summary = "ends the run if an index is out of range";
  let description = [{
    The result is the operand, in the same memory, once each element is known
    to be at least `lower` and below `upper`; else the run ends with an error.
    That it has a result makes it `Pure`: what reads at these positions uses it,
    and a check that nobody needs disappears.

    ```mlir
    %rows = ltc.check_bounds %ids in [0, 1000) : tensor<8xi64>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$indices,
                       I64Attr:$lower, I64Attr:$upper);
  let results = (outs AnyStaticShapeTensor:$checked);
  let assemblyFormat = [{
    $indices `in` `[` $lower `,` $upper `)` attr-dict `:` type($indices)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

#endif // TORCH_LTC_DIALECT_LTC_LTCOPS_TD
