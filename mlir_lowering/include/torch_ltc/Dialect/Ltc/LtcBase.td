//===- LtcBase.td - The dialect and shared definitions -----*- tablegen -*-===//

#ifndef TORCH_LTC_DIALECT_LTC_LTCBASE_TD
#define TORCH_LTC_DIALECT_LTC_LTCBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Ltc_Dialect : Dialect {
  let name = "ltc";
  let cppNamespace = "::mlir::torch_ltc::ltc";
  let summary = "Commands of a program";
  let description = [{
    Each op is one entry of the command list that the runtime executes: a call
    to a generated kernel, a library function or PyTorch's own kernel, or a
    memory operation. At the kernels stage a program consists of these ops,
    views and constants.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

class Ltc_Op<string mnemonic, list<Trait> traits = []>
    : Op<Ltc_Dialect, mnemonic, traits>;

/// Tensors of static shape and one of the given ranks.
class Ltc_TensorOfRank<list<Type> elements, list<int> ranks, string summary>
    : RankedTensorOf<elements, [HasStaticShapePred, HasAnyRankOfPred<ranks>],
                     summary>;

#endif // TORCH_LTC_DIALECT_LTC_LTCBASE_TD
