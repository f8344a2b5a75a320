//===- LtcLibraryOps.td - Calls of libraries and of PyTorch -*- tablegen -*-==//

#ifndef TORCH_LTC_DIALECT_LTC_LTCLIBRARYOPS_TD
#define TORCH_LTC_DIALECT_LTC_LTCLIBRARYOPS_TD

include "torch_ltc/Dialect/Ltc/LtcBase.td"
include "torch_ltc/Dialect/Ltc/LtcInterfaces.td"

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

def Ltc_Matrix : Ltc_TensorOfRank<[AnyType], [2, 3],
    "statically shaped matrix or batch of matrices">;

def Ltc_MatmulOp : Ltc_Op<"matmul",
    [Pure, AllElementTypesMatch<["a", "b", "c"]>]> {
  let summary = "matrix product by the runtime's library";
  let description = [{
    `a` is [m, k] or [batch, m, k], or with `transpose_a` [.., k, m]; `b` is [k,
    n] or [batch, k, n], or with `transpose_b` [.., n, k]. A single matrix is
    used for the whole batch of the other operand. `bias` is [n].

    ```mlir
    %y = ltc.matmul %x, %w bias %b {transpose_b}
        : (tensor<4x8xf32>, tensor<16x8xf32>, tensor<16xf32>)
        -> tensor<4x16xf32>
    ```
  }];
  let arguments = (ins Ltc_Matrix:$a, Ltc_Matrix:$b,
                       Optional<AnyStaticShapeTensor>:$bias,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Ltc_Matrix:$c);
  let assemblyFormat = [{
    $a `,` $b (`bias` $bias^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

def Ltc_Images : Ltc_TensorOfRank<[AnyType], [3, 4, 5],
    "statically shaped tensor of one to three spatial dimensions">;

/// `tensors` are the operands. All lists have one element for each spatial
/// dimension.
class Ltc_ConvolutionBase<string mnemonic, dag tensors>
    : Ltc_Op<mnemonic, [Pure, Ltc_ConvolutionOpInterface]> {
  let arguments = !con(tensors, (ins
      ConfinedAttr<DenseI64ArrayAttr,
                   [DenseArrayStrictlyPositive<DenseI64ArrayAttr>]>:$stride,
      ConfinedAttr<DenseI64ArrayAttr,
                   [DenseArrayNonNegative<DenseI64ArrayAttr>]>:$padding,
      ConfinedAttr<DenseI64ArrayAttr,
                   [DenseArrayStrictlyPositive<DenseI64ArrayAttr>]>:$dilation,
      ConfinedAttr<I64Attr, [IntPositive]>:$groups));
}

def Ltc_ConvolutionOp : Ltc_ConvolutionBase<"convolution",
    (ins Ltc_Images:$input, Ltc_Images:$weight,
         Optional<AnyStaticShapeTensor>:$bias)> {
  let summary = "convolution by the runtime's library";
  let description = [{
    `input` is [n, c, spatial...], `weight` [o, c / groups, spatial...],
    `output` [n, o, spatial...], `bias` [o]; one to three spatial dimensions.

    ```mlir
    %y = ltc.convolution %x, %w {stride = array<i64: 1, 1>,
        padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>,
        groups = 1 : i64}
        : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
    ```
  }];
  let results = (outs Ltc_Images:$output);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? attr-dict
      `:` functional-type(operands, results)
  }];
}

def Ltc_ConvolutionBackwardInputOp : Ltc_ConvolutionBase<
    "convolution_backward_input",
    (ins Ltc_Images:$grad_output, Ltc_Images:$weight)> {
  let summary = "gradient of a convolution with respect to its input";
  let results = (outs Ltc_Images:$grad_input);
  let assemblyFormat = [{
    $grad_output `,` $weight attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::mlir::Value getInput() { return getGradInput(); }
    ::mlir::Value getOutput() { return getGradOutput(); }
    ::mlir::Value getBias() { return {}; }
  }];
}

def Ltc_ConvolutionBackwardWeightOp : Ltc_ConvolutionBase<
    "convolution_backward_weight",
    (ins Ltc_Images:$grad_output, Ltc_Images:$input)> {
  let summary = "gradient of a convolution with respect to weight and bias";
  let results = (outs Ltc_Images:$grad_weight,
                      Optional<AnyStaticShapeTensor>:$grad_bias);
  let assemblyFormat = [{
    $grad_output `,` $input attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::mlir::Value getWeight() { return getGradWeight(); }
    ::mlir::Value getOutput() { return getGradOutput(); }
    ::mlir::Value getBias() { return getGradBias(); }
  }];
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def Ltc_Heads : Ltc_TensorOfRank<[F32], [4],
    "statically shaped f32 tensor of rank 4">;
def Ltc_LogSum : Ltc_TensorOfRank<[F32], [3],
    "statically shaped f32 tensor of rank 3">;

def Ltc_AttentionOp : Ltc_Op<"attention",
    [Pure, Ltc_AttentionOpInterface]> {
  let summary = "attention without stored scores";
  let description = [{
    `output` is softmax(query * key^T + mask) * value, `log_sum` the log of the
    sum of exp(score), which is infinite for a query that sees no key. `query`
    is [batch, heads, length, width], `key` [batch, heads, keys, width], `value`
    [batch, heads, keys, outputs], `mask` [batch or 1, heads or 1, length or 1,
    keys]. With `causal` a query sees the keys up to its own position.

    ```mlir
    %y:2 = ltc.attention %q, %k, %v mask %m {causal}
        : (tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>,
           tensor<1x1x4x3xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
    ```
  }];
  let arguments = (ins Ltc_Heads:$query, Ltc_Heads:$key, Ltc_Heads:$value,
                       Optional<Ltc_Heads>:$mask, UnitAttr:$causal);
  let results = (outs Ltc_Heads:$output, Ltc_LogSum:$log_sum);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? attr-dict
      `:` functional-type(operands, results)
  }];
}

def Ltc_AttentionBackwardOp : Ltc_Op<"attention_backward",
    [Pure, Ltc_AttentionOpInterface]> {
  let summary = "gradients of attention";
  let description = [{
    Computes the gradients of `ltc.attention`'s query, key and value from the
    gradient of its output, its operands and its results.
  }];
  let arguments = (ins Ltc_Heads:$grad_output, Ltc_Heads:$query,
                       Ltc_Heads:$key, Ltc_Heads:$value, Ltc_Heads:$output,
                       Ltc_LogSum:$log_sum, Optional<Ltc_Heads>:$mask,
                       UnitAttr:$causal);
  let results = (outs Ltc_Heads:$grad_query, Ltc_Heads:$grad_key,
                      Ltc_Heads:$grad_value);
  let assemblyFormat = [{
    $grad_output `,` $query `,` $key `,` $value `,` $output `,` $log_sum
      (`mask` $mask^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// PyTorch's kernels
//===----------------------------------------------------------------------===//

def Ltc_HostCallOp : Ltc_Op<"host_call",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "call to PyTorch's CPU kernel of an op";
  let description = [{
    `arguments` has one element for each argument of the op's schema: unit
    (none), a number, a string, an integer or floating-point list
    (`array<i64>`, `array<f64>`), a type (the next input, of this dtype; an
    input of rank 0 also stands for a number), or an array of types (a list of
    inputs; unit for an element that is none). `result_dtypes` lists the
    results' dtypes. Types have torch's signedness (`ui8`). A tensor whose dtype
    is `complex<f32>` is a tensor of `f32` with an additional last dim, the real
    and the imaginary part. The op has no side effects
    unless it begins or finishes a collective (Collectives.h).

    ```mlir
    %v:2 = ltc.host_call "aten::topk"(%x)
        {arguments = [f32, 3, 1, true, true], result_dtypes = [f32, si64]}
        : (tensor<2x9xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
    ```
  }];
  let arguments = (ins StrAttr:$callee, Variadic<AnyStaticShapeTensor>:$inputs,
                       ArrayAttr:$arguments, TypeArrayAttr:$result_dtypes);
  let results = (outs Variadic<AnyStaticShapeTensor>:$outputs);
  let assemblyFormat = [{
    $callee `(` $inputs `)` attr-dict
      `:` functional-type($inputs, $outputs)
  }];
  let extraClassDeclaration = [{
    /// The dtypes of the inputs, in order.
    ::llvm::SmallVector<::mlir::Type> getInputDtypes();
  }];
  let hasVerifier = 1;
}

#endif // TORCH_LTC_DIALECT_LTC_LTCLIBRARYOPS_TD
