//===- TorchTypes.td - Types of the torch dialect ----------*- tablegen -*-===//

#ifndef TORCH_LTC_DIALECT_TORCH_TORCHTYPES_TD
#define TORCH_LTC_DIALECT_TORCH_TORCHTYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "torch_ltc/Dialect/Torch/TorchBase.td"

class Torch_Type<string name, string typeMnemonic> : TypeDef<Torch_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Torch_ValueTensorType : Torch_Type<"ValueTensor", "vtensor"> {
  let summary = "an immutable tensor";
  let description = [{
    `!torch.vtensor<[2,3],f32>`. Sizes may be unknown (`*`) or dynamic (`?`),
    and the dtype may be unknown (`unk`); in `!torch.vtensor` both are unknown.
    Integer dtypes are signed or unsigned as in PyTorch: si64, ui8; bool is i1.
  }];
  // `sizes` is empty unless `hasSizes`; a null `dtype` stands for `unk`.
  let parameters = (ins "bool":$hasSizes, ArrayRefParameter<"int64_t">:$sizes,
                    "::mlir::Type":$dtype);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// A tensor of known sizes.
    static ValueTensorType get(MLIRContext *context, ArrayRef<int64_t> sizes,
                               Type dtype) {
      return get(context, /*hasSizes=*/true, sizes, dtype);
    }
    /// Whether all sizes are static and the dtype is known.
    bool isStatic() const;
    int64_t getRank() const { return getSizes().size(); }
    int64_t getNumElements() const;
    /// The builtin tensor type of a literal: same sizes, same dtype.
    RankedTensorType getLiteralType() const;
  }];
}

def Torch_IntType : Torch_Type<"Int", "int">;
def Torch_FloatType : Torch_Type<"Float", "float">;
def Torch_BoolType : Torch_Type<"Bool", "bool">;
def Torch_StringType : Torch_Type<"String", "str">;
def Torch_NoneType : Torch_Type<"None", "none">;
def Torch_NumberType : Torch_Type<"Number", "number"> {
  let summary = "an int or a float";
}
def Torch_DeviceType : Torch_Type<"Device", "Device">;
def Torch_GeneratorType : Torch_Type<"Generator", "Generator">;

class Torch_ContainerType<string name, string typeMnemonic>
    : Torch_Type<name, typeMnemonic> {
  let parameters = (ins "::mlir::Type":$containedType);
  let hasCustomAssemblyFormat = 1;
}
def Torch_ListType : Torch_ContainerType<"List", "list">;
def Torch_OptionalType : Torch_ContainerType<"Optional", "optional">;

#endif // TORCH_LTC_DIALECT_TORCH_TORCHTYPES_TD
