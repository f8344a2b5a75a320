//===- TorchOps.td - Constants and primitives --------------*- tablegen -*-===//
//
// Constants, lists, symbols and arithmetic on numbers. The other ATen operators
// are generated from the op table.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DIALECT_TORCH_TORCHOPS_TD
#define TORCH_LTC_DIALECT_TORCH_TORCHOPS_TD

include "torch_ltc/Dialect/Torch/TorchBase.td"
include "torch_ltc/Dialect/Torch/TorchTypes.td"

class Torch_ConstantOp<string kind>
    : Torch_Op<"constant." # kind,
               [Pure, ConstantLike,
                DeclareOpInterfaceMethods<OpAsmOpInterface,
                                          ["getAsmResultNames"]>]> {
  let hasFolder = 1;
}

def Torch_ConstantNoneOp : Torch_ConstantOp<"none"> {
  let results = (outs Torch_NoneType:$result);
  let assemblyFormat = "attr-dict";
}

class Torch_ValueConstantOp<string kind, Attr attribute, Type type>
    : Torch_ConstantOp<kind> {
  let arguments = (ins attribute:$value);
  let results = (outs type:$result);
  let assemblyFormat = "$value attr-dict";
}
def Torch_ConstantIntOp : Torch_ValueConstantOp<"int", I64Attr, Torch_IntType>;
def Torch_ConstantFloatOp
    : Torch_ValueConstantOp<"float", F64Attr, Torch_FloatType>;
def Torch_ConstantBoolOp
    : Torch_ValueConstantOp<"bool", BoolAttr, Torch_BoolType>;
def Torch_ConstantStrOp
    : Torch_ValueConstantOp<"str", StrAttr, Torch_StringType>;
def Torch_ConstantDeviceOp
    : Torch_ValueConstantOp<"device", StrAttr, Torch_DeviceType>;

def Torch_ValueTensorLiteralOp
    : Torch_Op<"vtensor.literal", [Pure, ConstantLike]> {
  let summary = "a tensor known at compile time";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Torch_Tensor:$result);
  let assemblyFormat = "`(` $value `)` attr-dict `:` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Torch_PrimListConstructOp : Torch_Op<"prim.ListConstruct", [Pure]> {
  let arguments = (ins Variadic<AnyType>:$elements);
  let results = (outs Torch_ListType:$result);
  let assemblyFormat =
      "$elements attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Torch_PrimListUnpackOp : Torch_Op<"prim.ListUnpack", [Pure]> {
  let arguments = (ins Torch_ListType:$list);
  let results = (outs Variadic<AnyType>:$elements);
  let assemblyFormat =
      "operands attr-dict `:` type(operands) `->` type(results)";
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Torch_PrimNumToTensorScalarOp
    : Torch_Op<"prim.NumToTensor.Scalar", [Pure]> {
  let summary = "a rank-0 tensor from a number";
  let arguments = (ins Torch_Scalar:$number);
  let results = (outs Torch_Tensor:$result);
  let assemblyFormat =
      "operands attr-dict `:` type(operands) `->` type(results)";
  let hasVerifier = 1;
}

def Torch_OperatorOp : Torch_Op<"operator", [Pure]> {
  let summary = "an operator that the dialect doesn't define";
  let arguments = (ins StrAttr:$name, Variadic<AnyType>:$arguments);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = [{
    $name `(` $arguments `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

def Torch_SymbolicIntOp : Torch_Op<"symbolic_int", [
    Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "a symbol of a program for all sizes, with its range";
  let description = [{
    The result has no value at run time: only `torch.bind_symbolic_shape` uses
    it. The program is valid for values of the symbol from `min_val` to
    `max_val`.
  }];
  let arguments = (ins StrAttr:$symbol_name, I64Attr:$min_val,
                   I64Attr:$max_val);
  let results = (outs Torch_IntType:$result);
  let assemblyFormat = [{
    $symbol_name ` ` `{` `min_val` `=` $min_val `,` `max_val` `=` $max_val `}`
    attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Torch_BindSymbolicShapeOp : Torch_Op<"bind_symbolic_shape"> {
  let summary = "the sizes of a tensor as expressions of symbols";
  let description = [{
    Equal expressions denote equal sizes:
    `torch.bind_symbolic_shape %x, [%s0], affine_map<()[s0] -> (s0, 2 * s0, 3)>
    : !torch.vtensor<[?,?,3],f32>`.
  }];
  let arguments = (ins Torch_Tensor:$operand,
                   Variadic<Torch_IntType>:$shape_symbols,
                   AffineMapAttr:$shape_expressions);
  let assemblyFormat = [{
    $operand `,` `[` $shape_symbols `]` `,` $shape_expressions attr-dict `:`
    type($operand)
  }];
  let hasVerifier = 1;
}

def Torch_AtenSizeIntOp : Torch_Op<"aten.size.int", [Pure]> {
  let arguments = (ins Torch_Tensor:$self, Torch_IntType:$dim);
  let results = (outs Torch_IntType:$result);
  let assemblyFormat =
      "operands attr-dict `:` type(operands) `->` type(results)";
  let hasFolder = 1;
}

class Torch_IntArithmeticOp<string mnemonic> : Torch_Op<mnemonic, [Pure]> {
  let arguments = (ins Torch_IntType:$a, Torch_IntType:$b);
  let results = (outs Torch_IntType:$result);
  let assemblyFormat =
      "operands attr-dict `:` type(operands) `->` type(results)";
  let hasFolder = 1;
}
def Torch_AtenAddIntOp : Torch_IntArithmeticOp<"aten.add.int">;
def Torch_AtenMulIntOp : Torch_IntArithmeticOp<"aten.mul.int">;
def Torch_AtenFloordivIntOp : Torch_IntArithmeticOp<"aten.floordiv.int">;

def Torch_AtenFloatScalarOp : Torch_Op<"aten.Float.Scalar", [Pure]> {
  let arguments = (ins Torch_IntType:$a);
  let results = (outs Torch_FloatType:$result);
  let assemblyFormat =
      "operands attr-dict `:` type(operands) `->` type(results)";
  let hasFolder = 1;
}

def Torch_AtenDivFloatOp : Torch_Op<"aten.div.float", [Pure]> {
  let arguments = (ins Torch_FloatType:$a, Torch_FloatType:$b);
  let results = (outs Torch_FloatType:$result);
  let assemblyFormat =
      "operands attr-dict `:` type(operands) `->` type(results)";
  let hasFolder = 1;
}

#endif // TORCH_LTC_DIALECT_TORCH_TORCHOPS_TD
