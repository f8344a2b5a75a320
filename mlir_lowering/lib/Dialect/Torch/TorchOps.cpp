//===- TorchOps.cpp - Constants and primitives ----------------------------===//

#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"

#include "mlir/IR/OpImplementation.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

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

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

void SymbolicIntOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getSymbolName());
}

LogicalResult SymbolicIntOp::verify() {
  if (getMinVal() > getMaxVal())
    return emitOpError() << "has an empty range, from " << getMinVal() << " to "
                         << getMaxVal();
  return success();
}

LogicalResult BindSymbolicShapeOp::verify() {
  auto type = cast<ValueTensorType>(getOperand().getType());
  AffineMap map = getShapeExpressions();
  if (getShapeSymbols().empty())
    return emitOpError("has no symbols");
  for (Value symbol : getShapeSymbols())
    if (!symbol.getDefiningOp<SymbolicIntOp>())
      return emitOpError("has a symbol that isn't a torch.symbolic_int");
  if (map.getNumDims() != 0 || map.getNumSymbols() != getShapeSymbols().size())
    return emitOpError() << "has " << getShapeSymbols().size()
                         << " symbols, but the expressions are of "
                         << map.getNumSymbols();
  if (!type.getHasSizes() || map.getNumResults() != type.getSizes().size())
    return emitOpError() << "has " << map.getNumResults()
                         << " expressions for the sizes of a " << Type(type);
  return success();
}

OpFoldResult AtenSizeIntOp::fold(FoldAdaptor adaptor) {
  auto dim = dyn_cast_or_null<IntegerAttr>(adaptor.getDim());
  auto type = cast<ValueTensorType>(getSelf().getType());
  if (!dim || !type.getHasSizes())
    return {};
  ArrayRef<int64_t> sizes = type.getSizes();
  int64_t number = dim.getInt();
  if (number < 0 || number >= int64_t(sizes.size()) ||
      ShapedType::isDynamic(sizes[number]))
    return {};
  return IntegerAttr::get(dim.getType(), sizes[number]);
}

using IntFunction = std::optional<int64_t> (*)(int64_t, int64_t);

static OpFoldResult foldInts(Attribute a, Attribute b, IntFunction function) {
  auto left = dyn_cast_or_null<IntegerAttr>(a);
  auto right = dyn_cast_or_null<IntegerAttr>(b);
  if (!left || !right)
    return {};
  std::optional<int64_t> result = function(left.getInt(), right.getInt());
  return result ? IntegerAttr::get(left.getType(), *result) : OpFoldResult();
}

OpFoldResult AtenAddIntOp::fold(FoldAdaptor adaptor) {
  return foldInts(adaptor.getA(), adaptor.getB(), llvm::checkedAdd<int64_t>);
}

OpFoldResult AtenMulIntOp::fold(FoldAdaptor adaptor) {
  return foldInts(adaptor.getA(), adaptor.getB(), llvm::checkedMul<int64_t>);
}

OpFoldResult AtenFloordivIntOp::fold(FoldAdaptor adaptor) {
  return foldInts(adaptor.getA(), adaptor.getB(),
                  [](int64_t a, int64_t b) -> std::optional<int64_t> {
                    if (b <= 0)
                      return std::nullopt;
                    return llvm::divideFloorSigned(a, b);
                  });
}

OpFoldResult AtenFloatScalarOp::fold(FoldAdaptor adaptor) {
  auto number = dyn_cast_or_null<IntegerAttr>(adaptor.getA());
  if (!number)
    return {};
  return FloatAttr::get(Float64Type::get(getContext()),
                        double(number.getInt()));
}

OpFoldResult AtenDivFloatOp::fold(FoldAdaptor adaptor) {
  auto a = dyn_cast_or_null<FloatAttr>(adaptor.getA());
  auto b = dyn_cast_or_null<FloatAttr>(adaptor.getB());
  if (!a || !b)
    return {};
  return FloatAttr::get(a.getType(),
                        a.getValueAsDouble() / b.getValueAsDouble());
}
