//===- FormulaBuilder.cpp - Operands, constants, results ------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_constructor.h"
#include "torch_ltc/Dialect/Torch/TorchOps_elementwise.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

static bool isStaticTensor(Type type) {
  auto tensor = dyn_cast<ValueTensorType>(type);
  return tensor && tensor.isStatic();
}

static bool isConstantLike(Value value) {
  Operation *op = value.getDefiningOp();
  return op && op->hasTrait<OpTrait::ConstantLike>();
}

// Returns why a decomposition can't use the operand, or null if it can.
static const char *problemWith(Value operand, bool isParameter) {
  Type type = operand.getType();
  if (isTensorType(type))
    return isStaticTensor(type) ? nullptr : "is a tensor of unknown sizes";
  if (isa<ListType>(type)) {
    auto list = operand.getDefiningOp<PrimListConstructOp>();
    if (!list)
      return "is a list that isn't constructed in the program";
    for (Value element : list.getElements())
      if (!isStaticTensor(element.getType()) && !isConstantLike(element))
        return "is a list of unknown elements";
    return nullptr;
  }
  if (torch::isFloatType(type) || isConstantLike(operand) ||
      (isParameter && isIntType(type)))
    return nullptr;
  return "isn't a constant";
}

LogicalResult FormulaBuilder::checkOperands(ArrayRef<unsigned> dynamicScalars) {
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned position = operand.getOperandNumber();
    bool isParameter = llvm::is_contained(dynamicScalars, position);
    if (const char *problem = problemWith(operand.get(), isParameter))
      return fail(torch::describeArgument(operand) + " " + problem);
  }
  for (Type type : op->getResultTypes())
    if (!isStaticTensor(type) && !isa<ListType>(type))
      return fail("the sizes of its result are unknown");
  return success();
}

bool FormulaBuilder::areOperandsKnown() const {
  return llvm::all_of(op->getOperands(), [](Value operand) {
    return !problemWith(operand, /*isParameter=*/false);
  });
}

LogicalResult FormulaBuilder::fail(const Twine &reason) {
  return rewriter.notifyMatchFailure(op, reason);
}

ArrayRef<int64_t> FormulaBuilder::resultSizes(unsigned result) const {
  return sizes(op->getResult(result));
}

Type FormulaBuilder::resultDtype(unsigned result) const {
  return dtype(op->getResult(result));
}

LogicalResult FormulaBuilder::replaceWith(ArrayRef<Value> values) {
  assert(values.size() == op->getNumResults());
  for (auto [result, value] : llvm::zip(op->getResults(), values))
    if (!value && !result.use_empty())
      return fail("result #" + Twine(result.getResultNumber()) +
                  " is used but not requested");
  for (auto [result, value] : llvm::zip(op->getResults(), values)) {
    if (!value)
      continue;
    Value replacement = value;
    if (isTensorType(result.getType()))
      replacement = view(cast(value, dtype(result)), sizes(result));
    rewriter.replaceAllUsesWith(result, replacement);
  }
  rewriter.eraseOp(op);
  return success();
}

LogicalResult FormulaBuilder::replaceOperand(Value operand, Value value) {
  rewriter.modifyOpInPlace(op, [&] { op->replaceUsesOfWith(operand, value); });
  return success();
}

LogicalResult FormulaBuilder::replaceIfEmpty() {
  if (llvm::any_of(op->getResults(), [](Value result) {
        return !isTensorType(result.getType()) || numElements(result) != 0;
      }))
    return failure();
  SmallVector<Value> values;
  for (Value result : op->getResults())
    values.push_back(zeros(sizes(result), dtype(result)));
  return replaceWith(values);
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

bool FormulaBuilder::isNone(Value value) {
  return isa<torch::NoneType>(value.getType());
}

int64_t FormulaBuilder::integer(Value value) {
  return value.getDefiningOp<ConstantIntOp>().getValueAttr().getInt();
}

bool FormulaBuilder::boolean(Value value) {
  return value.getDefiningOp<ConstantBoolOp>().getValue();
}

StringRef FormulaBuilder::string(Value value) {
  return value.getDefiningOp<ConstantStrOp>().getValue();
}

Number FormulaBuilder::number(Value value) {
  if (auto integer = value.getDefiningOp<ConstantIntOp>())
    return Number(integer.getValueAttr().getInt());
  if (auto number = value.getDefiningOp<ConstantFloatOp>())
    return Number(number.getValueAttr().getValueAsDouble());
  return Number::parameter(value);
}

SmallVector<int64_t> FormulaBuilder::integers(Value list) {
  return llvm::map_to_vector(
      list.getDefiningOp<PrimListConstructOp>().getElements(), integer);
}

SmallVector<bool> FormulaBuilder::booleans(Value list) {
  return llvm::map_to_vector(
      list.getDefiningOp<PrimListConstructOp>().getElements(), boolean);
}

int64_t FormulaBuilder::dimension(Value value, int64_t rank) {
  int64_t dim = integer(value);
  return dim < 0 ? dim + std::max<int64_t>(rank, 1) : dim;
}

SmallVector<int64_t> FormulaBuilder::dimensions(Value list, int64_t rank) {
  SmallVector<int64_t> dims;
  if (!isNone(list))
    dims = integers(list);
  if (rank == 0)
    return {};
  if (dims.empty())
    return llvm::to_vector(llvm::seq<int64_t>(0, rank));
  for (int64_t &dim : dims)
    dim = dim < 0 ? dim + rank : dim;
  llvm::sort(dims);
  return dims;
}

ArrayRef<int64_t> FormulaBuilder::sizes(Value tensor) {
  return mlir::cast<ValueTensorType>(tensor.getType()).getSizes();
}

Type FormulaBuilder::dtype(Value tensor) {
  return mlir::cast<ValueTensorType>(tensor.getType()).getDtype();
}

int64_t FormulaBuilder::numElements(Value tensor) {
  return mlir::cast<ValueTensorType>(tensor.getType()).getNumElements();
}

int64_t FormulaBuilder::count(Value tensor, ArrayRef<int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims)
    product *= sizes(tensor)[dim];
  return product;
}

//===----------------------------------------------------------------------===//
// Constants and casts
//===----------------------------------------------------------------------===//

Value FormulaBuilder::none() {
  return ConstantNoneOp::create(rewriter, op->getLoc(),
                                torch::NoneType::get(op->getContext()));
}

Value FormulaBuilder::constant(bool value) {
  return ConstantBoolOp::create(rewriter, op->getLoc(),
                                BoolType::get(op->getContext()),
                                rewriter.getBoolAttr(value));
}

Value FormulaBuilder::constant(int64_t value) {
  return ConstantIntOp::create(rewriter, op->getLoc(),
                               IntType::get(op->getContext()),
                               rewriter.getI64IntegerAttr(value));
}

Value FormulaBuilder::constant(double value) {
  return ConstantFloatOp::create(rewriter, op->getLoc(),
                                 torch::FloatType::get(op->getContext()),
                                 rewriter.getF64FloatAttr(value));
}

Value FormulaBuilder::list(ArrayRef<int64_t> values) {
  SmallVector<Value> elements = llvm::map_to_vector(
      values, [&](int64_t value) { return constant(value); });
  MLIRContext *context = op->getContext();
  return PrimListConstructOp::create(
      rewriter, op->getLoc(), ListType::get(context, IntType::get(context)),
      elements);
}

Value FormulaBuilder::listOf(ArrayRef<Value> tensors) {
  MLIRContext *context = op->getContext();
  Type element = ValueTensorType::get(context, /*hasSizes=*/false, {}, Type());
  return PrimListConstructOp::create(rewriter, op->getLoc(),
                                     ListType::get(context, element), tensors);
}

// The value of a dtype in torch's enumeration c10::ScalarType.
static int64_t scalarTypeOf(Type dtype) {
  if (auto integer = dyn_cast<mlir::IntegerType>(dtype)) {
    switch (integer.getWidth()) {
    case 1:
      return 11;
    case 8:
      return integer.isUnsigned() ? 0 : 1;
    case 16:
      return integer.isUnsigned() ? 27 : 2;
    case 32:
      return integer.isUnsigned() ? 28 : 3;
    default:
      return integer.isUnsigned() ? 29 : 4;
    }
  }
  if (dtype.isBF16())
    return 15;
  return dtype.isF16() ? 5 : dtype.isF32() ? 6 : 7;
}

Value FormulaBuilder::scalarType(Type dtype) {
  return constant(scalarTypeOf(dtype));
}

Value FormulaBuilder::cast(Value tensor, Type to) {
  if (dtype(tensor) == to)
    return tensor;
  auto type = ValueTensorType::get(op->getContext(), sizes(tensor), to);
  Value noValue = none();
  return Aten_ToCopyOp::create(
             rewriter, op->getLoc(), type,
             {tensor, scalarType(to), /*layout=*/noValue, /*device=*/noValue,
              /*pin_memory=*/noValue, /*non_blocking=*/constant(false),
              /*memory_format=*/noValue})
      .getResult();
}

Type FormulaBuilder::computeDtype(Type dtype) {
  return dtype.isF16() || dtype.isBF16() ? Float32Type::get(dtype.getContext())
                                         : dtype;
}

Value FormulaBuilder::compute(Value tensor) {
  if (!tensor || isNone(tensor))
    return tensor;
  return cast(tensor, computeDtype(dtype(tensor)));
}

Value FormulaBuilder::full(ArrayRef<int64_t> sizes, Number value, Type dtype) {
  auto type = ValueTensorType::get(op->getContext(), sizes, dtype);
  Value noValue = none();
  return AtenFullOp::create(rewriter, op->getLoc(), type,
                            {list(sizes), asScalar(value), scalarType(dtype),
                             /*layout=*/noValue, /*device=*/noValue,
                             /*pin_memory=*/noValue})
      .getResult();
}

Value FormulaBuilder::arange(int64_t end) {
  Type dtype =
      mlir::IntegerType::get(op->getContext(), 64, mlir::IntegerType::Signed);
  auto type = ValueTensorType::get(op->getContext(), {end}, dtype);
  Value noValue = none();
  return AtenArangeOp::create(rewriter, op->getLoc(), type,
                              {constant(end), scalarType(dtype),
                               /*layout=*/noValue, /*device=*/noValue,
                               /*pin_memory=*/noValue})
      .getResult();
}

Value FormulaBuilder::asScalar(Number number) {
  if (!number.isKnown())
    return number.getValue();
  if (number.isInteger())
    return constant(int64_t(number.get()));
  return constant(number.get());
}

Value FormulaBuilder::asTensor(Number number) {
  Value value = asScalar(number);
  if (isTensorType(value.getType()))
    return value;
  MLIRContext *context = op->getContext();
  Type dtype = Float64Type::get(context);
  if (isIntType(value.getType()))
    dtype = mlir::IntegerType::get(context, 64, mlir::IntegerType::Signed);
  return PrimNumToTensorScalarOp::create(
      rewriter, op->getLoc(), ValueTensorType::get(context, {}, dtype), value);
}

Number FormulaBuilder::sub(Number a, Number b) {
  if (a.isKnown() && b.isKnown())
    return Number(a.get() - b.get());
  if (a.isKnown())
    return Number::parameter(sub(a, asTensor(b)));
  return Number::parameter(sub(asTensor(a), b));
}

Number FormulaBuilder::mul(Number a, Number b) {
  if (a.isKnown() && b.isKnown())
    return Number(a.get() * b.get());
  if (a.isKnown())
    return Number::parameter(mul(asTensor(b), a));
  return Number::parameter(mul(asTensor(a), b));
}
