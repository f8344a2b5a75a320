//===- LtcInterfaces.td - Interfaces of library calls ------*- tablegen -*-===//

#ifndef TORCH_LTC_DIALECT_LTC_LTCINTERFACES_TD
#define TORCH_LTC_DIALECT_LTC_LTCINTERFACES_TD

include "mlir/IR/OpBase.td"

def Ltc_ConvolutionOpInterface : OpInterface<"ConvolutionOpInterface"> {
  let cppNamespace = "::mlir::torch_ltc::ltc";
  let description = [{
    A forward convolution or one of its gradients, described by the tensors of
    the forward convolution. In a gradient op, the gradients that it computes
    and reads replace the tensors that they belong to.
  }];
  let methods = [
    InterfaceMethod<"[n, c, spatial...]", "::mlir::Value", "getInput">,
    InterfaceMethod<"[o, c / groups, spatial...]", "::mlir::Value",
                    "getWeight">,
    InterfaceMethod<"[n, o, spatial...]", "::mlir::Value", "getOutput">,
    InterfaceMethod<"[o], or null", "::mlir::Value", "getBias">,
    InterfaceMethod<"", "::llvm::ArrayRef<int64_t>", "getStride">,
    InterfaceMethod<"", "::llvm::ArrayRef<int64_t>", "getPadding">,
    InterfaceMethod<"", "::llvm::ArrayRef<int64_t>", "getDilation">,
    InterfaceMethod<"", "int64_t", "getGroups">,
  ];
  let verify = [{ return detail::verifyConvolution($_op); }];
}

def Ltc_AttentionOpInterface : OpInterface<"AttentionOpInterface"> {
  let cppNamespace = "::mlir::torch_ltc::ltc";
  let description = [{
    Attention or its gradient. Both have these tensors as operands or results.
  }];
  let methods = [
    InterfaceMethod<"[batch, heads, length, width]", "::mlir::Value",
                    "getQuery">,
    InterfaceMethod<"[batch, heads, keys, width]", "::mlir::Value", "getKey">,
    InterfaceMethod<"[batch, heads, keys, outputs]", "::mlir::Value",
                    "getValue">,
    InterfaceMethod<"[batch or 1, heads or 1, length or 1, keys], or null",
                    "::mlir::Value", "getMask">,
    InterfaceMethod<"[batch, heads, length, outputs]", "::mlir::Value",
                    "getOutput">,
    InterfaceMethod<"[batch, heads, length]", "::mlir::Value", "getLogSum">,
    InterfaceMethod<"Whether a query sees only the keys up to its own position",
                    "bool", "getCausal">,
  ];
  let verify = [{ return detail::verifyAttention($_op); }];
}

#endif // TORCH_LTC_DIALECT_LTC_LTCINTERFACES_TD
