//===- AtenOps.cpp - Registration of the op table's ops -------------------===//

#include "torch_ltc/Dialect/Torch/AtenOp.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"

#define ATEN_FAMILIES
#include "torch_ltc/Dialect/Torch/AtenOps.inc"

using namespace mlir;
using namespace mlir::torch_ltc::torch;

namespace {
template <bool (*isElement)(Type)> bool isList(Type type) {
  return isListOf(type, isElement);
}
/// A complex number is a tensor of rank 0: the dialect has no other type.
bool isNumber(Type type) {
  return isScalarType(type) ||
         (isComplexTensor(type) &&
          mlir::cast<ValueTensorType>(type).getRank() == 0);
}
constexpr AtenValueKind optional(AtenValueKind kind) {
  kind.isOptional = true;
  return kind;
}

/// The kinds of arguments and results that torch ops have. The code generated
/// from the op table uses these names.
namespace kind {
constexpr AtenValueKind tensor{isTensorType, "torch tensor"};
constexpr AtenValueKind integer{isIntType, "torch int"};
constexpr AtenValueKind floating{isFloatType, "torch float"};
constexpr AtenValueKind boolean{isBoolType, "torch bool"};
constexpr AtenValueKind string{isStringType, "torch str"};
constexpr AtenValueKind device{isDeviceType, "torch Device"};
constexpr AtenValueKind generator{isGeneratorType, "torch Generator"};
constexpr AtenValueKind scalar{isNumber, "torch number"};
constexpr AtenValueKind tensors{isList<isTensorType>, "list of tensors"};
constexpr AtenValueKind optionalTensors{isList<isOptionalTensorType>,
                                        "list of optional tensors"};
constexpr AtenValueKind integers{isList<isIntType>, "list of ints"};
constexpr AtenValueKind floats{isList<isFloatType>, "list of floats"};
constexpr AtenValueKind booleans{isList<isBoolType>, "list of bools"};
constexpr AtenValueKind optionalTensor = optional(tensor);
constexpr AtenValueKind optionalScalar = optional(scalar);
constexpr AtenValueKind optionalInteger = optional(integer);
constexpr AtenValueKind optionalFloat = optional(floating);
constexpr AtenValueKind optionalBoolean = optional(boolean);
constexpr AtenValueKind optionalString = optional(string);
constexpr AtenValueKind optionalDevice = optional(device);
constexpr AtenValueKind optionalGenerator = optional(generator);
constexpr AtenValueKind optionalIntegers = optional(integers);
constexpr AtenValueKind optionalFloats = optional(floats);
} // namespace kind
} // namespace

#define ATEN_OP(op) MLIR_DEFINE_EXPLICIT_TYPE_ID(mlir::torch_ltc::torch::op)
#include "torch_ltc/Dialect/Torch/AtenOps.inc"

void TorchDialect::registerAtenOps() {
#define ATEN_REGISTRATION
#include "torch_ltc/Dialect/Torch/AtenOps.inc"
}
