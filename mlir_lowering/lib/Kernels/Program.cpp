//===- Program.cpp - The program function and the roles of its ops --------===//

#include "torch_ltc/Kernels/Program.h"

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::torch_ltc;

FailureOr<func::FuncOp> mlir::torch_ltc::findProgram(ModuleOp module) {
  func::FuncOp program;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isPrivate() || function.isDeclaration())
      continue;
    if (program)
      return function.emitError("the module has two public functions, @")
             << program.getName() << " and @" << function.getName()
             << "; a program must have one function";
    program = function;
  }
  if (!program)
    return module.emitError("the module has no public function");
  if (!program.getBody().hasOneBlock())
    return program.emitError("a program must be one block without branches");
  for (unsigned i = 0; i < program.getNumResults(); ++i) {
    Attribute updates = program.getResultAttr(i, kUpdatesAttr);
    auto argument = dyn_cast_or_null<IntegerAttr>(updates);
    if (updates && (!argument || argument.getInt() < 0 ||
                    argument.getInt() >= program.getNumArguments()))
      return program.emitError("result ")
             << i << " updates argument " << updates << " of "
             << program.getNumArguments();
  }
  return program;
}

static bool isTensor(Type type) { return isa<RankedTensorType>(type); }

OpRole mlir::torch_ltc::getRole(Operation *op) {
  if (isa_and_present<ltc::LtcDialect>(op->getDialect()))
    return OpRole::Call;
  if (isReshape(op))
    return OpRole::View;
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return isContiguousSlice(slice) ? OpRole::View : OpRole::Compute;
  if (isa<tensor::EmptyOp>(op))
    return OpRole::Clone;
  DenseElementsAttr elements;
  if (matchPattern(op, m_Constant(&elements)))
    return elements.isSplat() ? OpRole::Clone : OpRole::Constant;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return OpRole::Clone;
  // Scalar arithmetic on the program's scalar parameters.
  if (op->getNumRegions() == 0 && op->getNumResults() > 0 &&
      llvm::none_of(op->getResultTypes(), isTensor))
    return OpRole::Clone;
  return OpRole::Compute;
}

Value mlir::torch_ltc::getViewSource(Operation *view) {
  // The other operands are sizes and offsets.
  return view->getOperand(0);
}

SetVector<Value> mlir::torch_ltc::valuesRead(Operation *op) {
  SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

bool mlir::torch_ltc::isReshape(Operation *op) {
  return isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

bool mlir::torch_ltc::isContiguousSlice(tensor::ExtractSliceOp slice) {
  if (!slice.getSourceType().hasStaticShape() ||
      llvm::any_of(slice.getStaticOffsets(), ShapedType::isDynamic) ||
      llvm::any_of(slice.getStaticSizes(), ShapedType::isDynamic))
    return false;
  // The slice must cover all dimensions after the first in which it has more
  // than one element.
  bool whole = false;
  for (auto [size, full, stride] :
       llvm::zip_equal(slice.getStaticSizes(), slice.getSourceType().getShape(),
                       slice.getStaticStrides())) {
    if (size > 1 && stride != 1)
      return false;
    if (whole && size != full)
      return false;
    whole |= size > 1;
  }
  return true;
}

int64_t torch_ltc::getSliceOffset(tensor::ExtractSliceOp slice) {
  int64_t offset = 0;
  for (auto [start, full] : llvm::zip_equal(slice.getStaticOffsets(),
                                            slice.getSourceType().getShape()))
    offset = offset * full + start;
  return offset;
}

std::pair<Value, int64_t> torch_ltc::lookThroughViews(Value value) {
  int64_t offset = 0;
  while (Operation *def = value.getDefiningOp()) {
    if (auto check = dyn_cast<ltc::CheckBoundsOp>(def)) {
      value = check.getIndices();
      continue;
    }
    if (getRole(def) != OpRole::View)
      break;
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(def)) {
      int64_t elements = slice.getResultType().getNumElements();
      int64_t width = getTensorBytes(slice.getResultType()) /
                      std::max<int64_t>(1, elements);
      offset += getSliceOffset(slice) * width;
    }
    value = getViewSource(def);
  }
  return {value, offset};
}

int64_t torch_ltc::getTensorBytes(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.getNumElements() *
           llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
  return 8; // scalar parameters
}
