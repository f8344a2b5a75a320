//===- TorchOps.td - Constants and primitives --------------*- tablegen -*-===//
//
// The ops that aren't ATen operators; those are generated from the op table.
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

#endif // TORCH_LTC_DIALECT_TORCH_TORCHOPS_TD
