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
    module unchanged. Results have explicit types, because the tracer knows each
    shape and dtype.
  }];
  let useDefaultTypePrinterParser = 0;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    Type parseType(DialectAsmParser &parser) const override;
    void printType(Type type, DialectAsmPrinter &printer) const override;
    void registerTypes();
    /// The ops of the op table (AtenOp.h).
    void registerAtenOps();
    /// The names of the arguments of each op of the table, by the op's name,
    /// separated by spaces.
    llvm::StringMap<StringRef> argumentNames;
  }];
}

class Torch_Op<string mnemonic, list<Trait> traits = []>
    : Op<Torch_Dialect, mnemonic, traits>;

class Torch_Value<string predicate, string summary>
    : Type<CPred<"::mlir::torch_ltc::torch::" # predicate # "($_self)">, summary>;
def Torch_Tensor : Torch_Value<"isTensorType", "torch tensor">;
def Torch_Scalar : Torch_Value<"isScalarType", "torch number">;

#endif // TORCH_LTC_DIALECT_TORCH_TORCHBASE_TD
