//===- StablehloOps.td - The supported ops of StableHLO ----*- tablegen -*-===//
//
// A subset of StableHLO, written from its public specification: the ops that
// exported programs use. Names, operands, attributes and their syntax are
// StableHLO's, so that its parser accepts the text; ops are printed in MLIR's
// generic form.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DIALECT_STABLEHLO_STABLEHLOOPS_TD
#define TORCH_LTC_DIALECT_STABLEHLO_STABLEHLOOPS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Stablehlo_Dialect : Dialect {
  let name = "stablehlo";
  let cppNamespace = "::mlir::torch_ltc::stablehlo";
  let summary = "the StableHLO ops that torch_ltc supports";
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Stablehlo_Attr<string name, string mnemonicOfAttr>
    : AttrDef<Stablehlo_Dialect, name> {
  let mnemonic = mnemonicOfAttr;
  let hasCustomAssemblyFormat = 1;
}

def Stablehlo_DotDimensionNumbers
    : Stablehlo_Attr<"DotDimensionNumbers", "dot"> {
  let summary = "dimensions of dot_general";
  let parameters = (ins ArrayRefParameter<"int64_t">:$lhsBatching,
                    ArrayRefParameter<"int64_t">:$rhsBatching,
                    ArrayRefParameter<"int64_t">:$lhsContracting,
                    ArrayRefParameter<"int64_t">:$rhsContracting);
}

def Stablehlo_GatherDimensionNumbers
    : Stablehlo_Attr<"GatherDimensionNumbers", "gather"> {
  let summary = "dimensions of gather";
  let parameters = (ins ArrayRefParameter<"int64_t">:$offsetDims,
                    ArrayRefParameter<"int64_t">:$collapsedSliceDims,
                    ArrayRefParameter<"int64_t">:$startIndexMap,
                    "int64_t":$indexVectorDim);
}

def Stablehlo_ConvDimensionNumbers
    : Stablehlo_Attr<"ConvDimensionNumbers", "conv"> {
  let summary = "dimensions of convolution, channels second";
  let description = [{
    `#stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>`: the only
    supported order of dimensions, for any number of spatial ones.
  }];
  let parameters = (ins "int64_t":$spatialRank);
}

def Stablehlo_ComparisonDirection
    : I32EnumAttr<"ComparisonDirection", "comparison operator", [
        I32EnumAttrCase<"EQ", 0>, I32EnumAttrCase<"NE", 1>,
        I32EnumAttrCase<"GE", 2>, I32EnumAttrCase<"GT", 3>,
        I32EnumAttrCase<"LE", 4>, I32EnumAttrCase<"LT", 5>]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::torch_ltc::stablehlo";
}
def Stablehlo_ComparisonDirectionAttr
    : EnumAttr<Stablehlo_Dialect, Stablehlo_ComparisonDirection,
               "comparison_direction">;

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

def Stablehlo_Tensor : Type<
    And<[IsRankedTensorTypePred, HasStaticShapePred]>,
    "tensor of static shape", "::mlir::RankedTensorType">;
def Stablehlo_Bools : Type<
    And<[Stablehlo_Tensor.predicate,
         CPred<"::llvm::cast<::mlir::ShapedType>($_self).getElementType()"
               ".isInteger(1)">]>,
    "tensor of bools", "::mlir::RankedTensorType">;

class Stablehlo_Op<string mnemonic, list<Trait> traits = []>
    : Op<Stablehlo_Dialect, mnemonic, !listconcat([Pure], traits)>;

class Stablehlo_TensorOp<string mnemonic, dag inputs, list<Trait> traits = []>
    : Stablehlo_Op<mnemonic, traits> {
  let arguments = inputs;
  let results = (outs Stablehlo_Tensor:$result);
}

class Stablehlo_UnaryOp<string mnemonic>
    : Stablehlo_TensorOp<mnemonic, (ins Stablehlo_Tensor:$operand),
                         [SameOperandsAndResultType]>;
def Stablehlo_AbsOp : Stablehlo_UnaryOp<"abs">;
def Stablehlo_CeilOp : Stablehlo_UnaryOp<"ceil">;
def Stablehlo_CosineOp : Stablehlo_UnaryOp<"cosine">;
def Stablehlo_ExpOp : Stablehlo_UnaryOp<"exponential">;
def Stablehlo_Expm1Op : Stablehlo_UnaryOp<"exponential_minus_one">;
def Stablehlo_FloorOp : Stablehlo_UnaryOp<"floor">;
def Stablehlo_LogOp : Stablehlo_UnaryOp<"log">;
def Stablehlo_Log1pOp : Stablehlo_UnaryOp<"log_plus_one">;
def Stablehlo_NegOp : Stablehlo_UnaryOp<"negate">;
def Stablehlo_NotOp : Stablehlo_UnaryOp<"not">;
def Stablehlo_RoundNearestEvenOp : Stablehlo_UnaryOp<"round_nearest_even">;
def Stablehlo_RsqrtOp : Stablehlo_UnaryOp<"rsqrt">;
def Stablehlo_SineOp : Stablehlo_UnaryOp<"sine">;
def Stablehlo_SqrtOp : Stablehlo_UnaryOp<"sqrt">;
def Stablehlo_TanOp : Stablehlo_UnaryOp<"tan">;
def Stablehlo_TanhOp : Stablehlo_UnaryOp<"tanh">;

class Stablehlo_BinaryOp<string mnemonic>
    : Stablehlo_TensorOp<mnemonic,
                         (ins Stablehlo_Tensor:$lhs, Stablehlo_Tensor:$rhs),
                         [SameOperandsAndResultType]>;
def Stablehlo_AddOp : Stablehlo_BinaryOp<"add">;
def Stablehlo_AndOp : Stablehlo_BinaryOp<"and">;
def Stablehlo_Atan2Op : Stablehlo_BinaryOp<"atan2">;
def Stablehlo_DivOp : Stablehlo_BinaryOp<"divide">;
def Stablehlo_MaxOp : Stablehlo_BinaryOp<"maximum">;
def Stablehlo_MinOp : Stablehlo_BinaryOp<"minimum">;
def Stablehlo_MulOp : Stablehlo_BinaryOp<"multiply">;
def Stablehlo_OrOp : Stablehlo_BinaryOp<"or">;
def Stablehlo_PowOp : Stablehlo_BinaryOp<"power">;
def Stablehlo_RemOp : Stablehlo_BinaryOp<"remainder">;
def Stablehlo_ShiftLeftOp : Stablehlo_BinaryOp<"shift_left">;
def Stablehlo_ShiftRightArithmeticOp
    : Stablehlo_BinaryOp<"shift_right_arithmetic">;
def Stablehlo_ShiftRightLogicalOp : Stablehlo_BinaryOp<"shift_right_logical">;
def Stablehlo_SubtractOp : Stablehlo_BinaryOp<"subtract">;
def Stablehlo_XorOp : Stablehlo_BinaryOp<"xor">;

def Stablehlo_CompareOp : Stablehlo_Op<"compare", [
    SameTypeOperands, SameOperandsAndResultShape]> {
  let arguments = (ins Stablehlo_Tensor:$lhs, Stablehlo_Tensor:$rhs,
                   Stablehlo_ComparisonDirectionAttr:$comparison_direction);
  let results = (outs Stablehlo_Bools:$result);
}
def Stablehlo_SelectOp
    : Stablehlo_TensorOp<"select",
                         (ins Stablehlo_Bools:$pred, Stablehlo_Tensor:$on_true,
                          Stablehlo_Tensor:$on_false),
                         [SameOperandsAndResultShape,
                          AllTypesMatch<["on_true", "on_false", "result"]>]>;
def Stablehlo_ConvertOp
    : Stablehlo_TensorOp<"convert", (ins Stablehlo_Tensor:$operand),
                         [SameOperandsAndResultShape]>;
def Stablehlo_BitcastConvertOp
    : Stablehlo_TensorOp<"bitcast_convert", (ins Stablehlo_Tensor:$operand),
                         [SameOperandsAndResultShape]>;

def Stablehlo_ConstantOp
    : Stablehlo_TensorOp<"constant", (ins ElementsAttr:$value),
                         [ConstantLike,
                          AllTypesMatch<["value", "result"]>]> {
  let hasFolder = 1;
}
def Stablehlo_IotaOp
    : Stablehlo_TensorOp<"iota", (ins I64Attr:$iota_dimension)>;

def Stablehlo_BroadcastInDimOp
    : Stablehlo_TensorOp<"broadcast_in_dim",
                         (ins Stablehlo_Tensor:$operand,
                          DenseI64ArrayAttr:$broadcast_dimensions),
                         [SameOperandsAndResultElementType]>;
def Stablehlo_ReshapeOp
    : Stablehlo_TensorOp<"reshape", (ins Stablehlo_Tensor:$operand),
                         [SameOperandsAndResultElementType]>;
def Stablehlo_TransposeOp
    : Stablehlo_TensorOp<"transpose",
                         (ins Stablehlo_Tensor:$operand,
                          DenseI64ArrayAttr:$permutation),
                         [SameOperandsAndResultElementType]>;
def Stablehlo_SliceOp
    : Stablehlo_TensorOp<"slice",
                         (ins Stablehlo_Tensor:$operand,
                          DenseI64ArrayAttr:$start_indices,
                          DenseI64ArrayAttr:$limit_indices,
                          DenseI64ArrayAttr:$strides),
                         [SameOperandsAndResultElementType]>;
def Stablehlo_PadOp
    : Stablehlo_TensorOp<"pad",
                         (ins Stablehlo_Tensor:$operand,
                          Stablehlo_Tensor:$padding_value,
                          DenseI64ArrayAttr:$edge_padding_low,
                          DenseI64ArrayAttr:$edge_padding_high,
                          DenseI64ArrayAttr:$interior_padding),
                         [SameOperandsAndResultElementType]>;
def Stablehlo_ConcatenateOp
    : Stablehlo_TensorOp<"concatenate",
                         (ins Variadic<Stablehlo_Tensor>:$inputs,
                          I64Attr:$dimension),
                         [SameOperandsAndResultElementType]>;
def Stablehlo_ReverseOp
    : Stablehlo_TensorOp<"reverse",
                         (ins Stablehlo_Tensor:$operand,
                          DenseI64ArrayAttr:$dimensions),
                         [SameOperandsAndResultType]>;

def Stablehlo_ReduceOp : Stablehlo_Op<"reduce", [SameVariadicOperandSize]> {
  let summary = "reduces dimensions with the op in the region";
  let arguments = (ins Variadic<Stablehlo_Tensor>:$inputs,
                   Variadic<Stablehlo_Tensor>:$init_values,
                   DenseI64ArrayAttr:$dimensions);
  let results = (outs Variadic<Stablehlo_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);

}
def Stablehlo_ReturnOp : Stablehlo_Op<"return", [Terminator, ReturnLike]> {
  let arguments = (ins Variadic<Stablehlo_Tensor>:$results);
}

def Stablehlo_DotGeneralOp
    : Stablehlo_TensorOp<"dot_general",
                         (ins Stablehlo_Tensor:$lhs, Stablehlo_Tensor:$rhs,
                          Stablehlo_DotDimensionNumbers:$dot_dimension_numbers)>;
def Stablehlo_GatherOp
    : Stablehlo_TensorOp<"gather",
                         (ins Stablehlo_Tensor:$operand,
                          Stablehlo_Tensor:$start_indices,
                          Stablehlo_GatherDimensionNumbers:$dimension_numbers,
                          DenseI64ArrayAttr:$slice_sizes)>;
def Stablehlo_ConvolutionOp
    : Stablehlo_TensorOp<"convolution",
                         (ins Stablehlo_Tensor:$lhs, Stablehlo_Tensor:$rhs,
                          DenseI64ArrayAttr:$window_strides,
                          I64ElementsAttr:$padding,
                          DenseI64ArrayAttr:$lhs_dilation,
                          DenseI64ArrayAttr:$rhs_dilation,
                          Stablehlo_ConvDimensionNumbers:$dimension_numbers,
                          I64Attr:$feature_group_count,
                          I64Attr:$batch_group_count)>;

#endif // TORCH_LTC_DIALECT_STABLEHLO_STABLEHLOOPS_TD
