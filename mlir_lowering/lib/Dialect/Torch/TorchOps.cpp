//===- TorchOps.cpp - Constants and primitives ----------------------------===//

#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::torch_ltc::torch;

#define GET_OP_CLASSES
#include "torch_ltc/Dialect/Torch/TorchOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

OpFoldResult ConstantNoneOp::fold(FoldAdaptor) {
  return UnitAttr::get(getContext());
}
OpFoldResult ConstantIntOp::fold(FoldAdaptor) { return getValueAttr(); }
OpFoldResult ConstantFloatOp::fold(FoldAdaptor) { return getValueAttr(); }
OpFoldResult ConstantBoolOp::fold(FoldAdaptor) { return getValueAttr(); }
OpFoldResult ConstantStrOp::fold(FoldAdaptor) { return getValueAttr(); }
OpFoldResult ConstantDeviceOp::fold(FoldAdaptor) { return getValueAttr(); }
OpFoldResult ValueTensorLiteralOp::fold(FoldAdaptor) { return getValueAttr(); }

// Names such as %int1 make the text readable without looking up operands.
void ConstantNoneOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "none");
}
void ConstantIntOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), ("int" + Twine(getValueAttr().getInt())).str());
}
void ConstantFloatOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "float");
}
void ConstantBoolOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getValue() ? "true" : "false");
}
void ConstantStrOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "str");
}
void ConstantDeviceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "device");
}

LogicalResult ValueTensorLiteralOp::verify() {
  auto type = cast<ValueTensorType>(getType());
  if (!type.isStatic() || getValue().getShapedType() != type.getLiteralType())
    return emitOpError() << "the literal's type " << getValue().getShapedType()
                         << " does not match the result " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Primitives
//===----------------------------------------------------------------------===//

LogicalResult PrimListConstructOp::verify() {
  Type contained = cast<ListType>(getType()).getContainedType();
  for (Type type : getElements().getTypes())
    if (!isSubtype(type, contained))
      return emitOpError() << "an element of type " << type
                           << " cannot be in a list of " << contained;
  return success();
}

LogicalResult PrimListUnpackOp::verify() {
  auto list = getList().getDefiningOp<PrimListConstructOp>();
  if (list && list.getElements().size() != getNumResults())
    return emitOpError() << "unpacks " << getNumResults()
                         << " values of a list of "
                         << list.getElements().size();
  return success();
}

namespace {
// ListUnpack(ListConstruct(x...)) -> x...
struct UnpackConstructedList : OpRewritePattern<PrimListUnpackOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PrimListUnpackOp op,
                                PatternRewriter &rewriter) const override {
    auto list = op.getList().getDefiningOp<PrimListConstructOp>();
    if (!list || list.getElements().getTypes() != op.getResultTypes())
      return failure();
    rewriter.replaceOp(op, list.getElements());
    return success();
  }
};
} // namespace

void PrimListUnpackOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                   MLIRContext *context) {
  patterns.add<UnpackConstructedList>(context);
}

LogicalResult PrimNumToTensorScalarOp::verify() {
  auto type = cast<ValueTensorType>(getType());
  if (type.getHasSizes() && type.getRank() != 0)
    return emitOpError() << "makes a tensor of rank 0, got " << type;
  return success();
}
