//===- LtcDialect.cpp - Commands of a program -----------------------------===//

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::torch_ltc::ltc;

#include "torch_ltc/Dialect/Ltc/LtcDialect.cpp.inc"

#define GET_OP_CLASSES
#include "torch_ltc/Dialect/Ltc/LtcOps.cpp.inc"

void LtcDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "torch_ltc/Dialect/Ltc/LtcOps.cpp.inc"
      >();
}

LogicalResult JoinOp::verify() {
  auto whole = cast<RankedTensorType>(getWhole().getType());
  int64_t rows = 0;
  for (Value part : getParts()) {
    auto type = cast<RankedTensorType>(part.getType());
    if (type.getRank() == 0 || type.getRank() != whole.getRank() ||
        type.getElementType() != whole.getElementType() ||
        type.getShape().drop_front() != whole.getShape().drop_front())
      return emitOpError() << "can't make " << type << " a part of " << whole
                           << ": only the first size may differ";
    rows += type.getDimSize(0);
  }
  if (whole.getRank() == 0 || rows != whole.getDimSize(0))
    return emitOpError() << "has parts of " << rows << " rows, but makes "
                         << whole;
  return success();
}

LogicalResult
KernelCallOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto callee =
      symbolTable.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError() << "calls '" << getCallee()
                         << "', which is not a function of this module";
  if (callee.getFunctionType().getInputs() != getArguments().getTypes() ||
      callee.getFunctionType().getResults() != getOutputs().getTypes())
    return emitOpError() << "has operand or result types that differ from '"
                         << getCallee() << "', which is "
                         << callee.getFunctionType();
  return success();
}

LogicalResult CheckBoundsOp::verify() {
  auto type = cast<RankedTensorType>(getIndices().getType());
  if (getNonzero())
    return type.getElementType().isInteger()
               ? success()
               : emitOpError("checks integer divisors, got ") << type;
  if (!type.getElementType().isInteger(32) &&
      !type.getElementType().isInteger(64))
    return emitOpError("checks tensors of i32 or i64, got ") << type;
  return success();
}

/// Removes the check of constants that are in range.
OpFoldResult CheckBoundsOp::fold(FoldAdaptor adaptor) {
  bool nonzero = getNonzero();
  auto isInside = [&](const APInt &value) {
    if (nonzero)
      return !value.isZero();
    return value.sge(int64_t(getLower())) && value.slt(int64_t(getUpper()));
  };
  auto elements = dyn_cast_or_null<DenseIntElementsAttr>(adaptor.getIndices());
  if (elements && llvm::all_of(elements.getValues<APInt>(), isInside))
    return getIndices();
  return {};
}
