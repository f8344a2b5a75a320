//===- TorchBase.td - The torch dialect and its op classes -*- tablegen -*-===//

#ifndef TORCH_LTC_DIALECT_TORCH_TORCHBASE_TD
#define TORCH_LTC_DIALECT_TORCH_TORCHBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Torch_Dialect : Dialect {
  let name = "torch";
  let cppNamespace = "::mlir::torch_ltc::torch";
  let summary = "PyTorch's ATen ops with value semantics";
  let description = [{
    The syntax of ops and types is torch-mlir's, so that its tools can read a
    module unchanged. Results have explicit types: the tracer knows each shape
    and dtype.
  }];
  let useDefaultTypePrinterParser = 0;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    /// For the generated registration functions: `addOperations` is protected.
    template <typename... Ops> void addOps() { addOperations<Ops...>(); }

    Type parseType(DialectAsmParser &parser) const override;
    void printType(Type type, DialectAsmPrinter &printer) const override;
    void registerTypes();
  }];
}

class Torch_Op<string mnemonic, list<Trait> traits = []>
    : Op<Torch_Dialect, mnemonic, traits>;

// Every op of the table: pure, with one operand for each argument of the
// schema.
class Torch_AtenOp<string mnemonic, list<Trait> traits = []>
    : Torch_Op<mnemonic, !listconcat([Pure], traits)> {
  let assemblyFormat = "operands attr-dict `:` type(operands) `->` type(results)";
}

class Torch_Value<string predicate, string summary>
    : Type<CPred<"::mlir::torch_ltc::torch::" # predicate # "($_self)">, summary>;
class Torch_ListOf<string elementPredicate, string summary>
    : Type<CPred<"::mlir::torch_ltc::torch::isListOf($_self, "
                 "::mlir::torch_ltc::torch::" # elementPredicate # ")">, summary>;
class Torch_OptionalOf<Type type>
    : Type<Or<[type.predicate, CPred<"::mlir::torch_ltc::torch::isNoneType($_self)">]>,
           "optional " # type.summary>;

def Torch_Tensor : Torch_Value<"isTensorType", "torch tensor">;
def Torch_Int : Torch_Value<"isIntType", "torch int">;
def Torch_Float : Torch_Value<"isFloatType", "torch float">;
def Torch_Bool : Torch_Value<"isBoolType", "torch bool">;
def Torch_String : Torch_Value<"isStringType", "torch str">;
def Torch_Device : Torch_Value<"isDeviceType", "torch Device">;
def Torch_Generator
    : Torch_Value<"isGeneratorType", "torch Generator">;
def Torch_Scalar : Torch_Value<"isScalarType", "torch number">;

def Torch_TensorList : Torch_ListOf<"isTensorType", "list of tensors">;
def Torch_OptionalTensorList
    : Torch_ListOf<"isOptionalTensorType", "list of optional tensors">;
def Torch_IntList : Torch_ListOf<"isIntType", "list of ints">;
def Torch_FloatList : Torch_ListOf<"isFloatType", "list of floats">;
def Torch_BoolList : Torch_ListOf<"isBoolType", "list of bools">;

def Torch_OptionalTensor : Torch_OptionalOf<Torch_Tensor>;
def Torch_OptionalScalar : Torch_OptionalOf<Torch_Scalar>;
def Torch_OptionalInt : Torch_OptionalOf<Torch_Int>;
def Torch_OptionalFloat : Torch_OptionalOf<Torch_Float>;
def Torch_OptionalBool : Torch_OptionalOf<Torch_Bool>;
def Torch_OptionalString : Torch_OptionalOf<Torch_String>;
def Torch_OptionalDevice : Torch_OptionalOf<Torch_Device>;
def Torch_OptionalGenerator : Torch_OptionalOf<Torch_Generator>;
def Torch_OptionalIntList : Torch_OptionalOf<Torch_IntList>;
def Torch_OptionalFloatList : Torch_OptionalOf<Torch_FloatList>;

#endif // TORCH_LTC_DIALECT_TORCH_TORCHBASE_TD
