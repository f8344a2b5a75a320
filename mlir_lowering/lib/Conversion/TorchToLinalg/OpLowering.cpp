//===- OpLowering.cpp - Lowering of one torch op to linalg ----------------===//

#include "OpLowering.h"

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Support/UserLocation.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value NumberOperand::materialize(OpBuilder &builder, Location loc,
                                 Type to) const {
  ScalarBuilder scalars(builder, loc, to);
  if (auto integer = dyn_cast_or_null<IntegerAttr>(constant))
    return isBool(dtype) ? scalars.constant(integer.getValue().isZero() ? 0 : 1)
                         : scalars.integer(integer.getInt());
  if (auto floating = dyn_cast_or_null<FloatAttr>(constant))
    return scalars.constant(floating.getValueAsDouble());
  return scalars.convert(value, dtype, to);
}

std::optional<double> NumberOperand::asDouble() const {
  if (auto integer = dyn_cast_or_null<IntegerAttr>(constant))
    return isBool(dtype) ? !integer.getValue().isZero()
                         : static_cast<double>(integer.getInt());
  if (auto floating = dyn_cast_or_null<FloatAttr>(constant))
    return floating.getValueAsDouble();
  return std::nullopt;
}

static Type numberDtype(Type type) {
  MLIRContext *context = type.getContext();
  if (isa<torch::IntType>(type))
    return IntegerType::get(context, 64, IntegerType::Signed);
  if (isa<torch::BoolType>(type))
    return IntegerType::get(context, 1);
  return Float64Type::get(context);
}

static NumberOperand makeNumber(Value original, Value converted) {
  NumberOperand number{numberDtype(original.getType()), {}, {}};
  Operation *definition = original.getDefiningOp();
  if (auto constant = dyn_cast_or_null<torch::ConstantIntOp>(definition))
    number.constant = constant.getValueAttr();
  else if (auto constant = dyn_cast_or_null<torch::ConstantFloatOp>(definition))
    number.constant = constant.getValueAttr();
  else if (auto constant = dyn_cast_or_null<torch::ConstantBoolOp>(definition))
    number.constant = constant.getValueAttr();
  else
    number.value = converted;
  return number;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

OpLowering::OpLowering(Operation *op, StringRef name, ValueRange operands,
                       ConversionPatternRewriter &builder, StringRef targetName,
                       bool numbersAreTensors)
    : op(op), name(name), builder(builder), loc(op->getLoc()),
      tensors(builder, op->getLoc()), arguments(op->getOperands()),
      operands(operands), targetName(targetName),
      numbersAreTensors(numbersAreTensors) {}

template <typename T>
concept ReadsPosition = requires(const T &op) { op.tensor(0); };
static_assert(!ReadsPosition<OpLowering>, "arguments are read by name");

unsigned OpLowering::positionOf(OpArgument argument) const {
  const Value *it = llvm::find(arguments, argument);
  assert(it != arguments.end() && "not an operand of the op");
  return it - arguments.begin();
}

bool OpLowering::isNone(OpArgument argument) const {
  return isa<torch::NoneType>(argument.getType());
}

bool OpLowering::isTensor(OpArgument argument) const {
  return isa<torch::ValueTensorType>(argument.getType());
}

bool OpLowering::isNumber(OpArgument argument) const {
  Type type = argument.getType();
  return torch::isScalarType(type) || isa<torch::BoolType>(type);
}

RankedTensorType OpLowering::tensorType(OpArgument argument) const {
  return cast<RankedTensorType>(operands[positionOf(argument)].getType());
}

ArrayRef<int64_t> OpLowering::sizes(OpArgument argument) const {
  return cast<torch::ValueTensorType>(argument.getType()).getSizes();
}

Type OpLowering::dtype(OpArgument argument) const {
  return cast<torch::ValueTensorType>(argument.getType()).getDtype();
}

std::optional<NumberOperand>
OpLowering::tensorAsNumber(OpArgument argument) const {
  auto source = argument.getDefiningOp<torch::PrimNumToTensorScalarOp>();
  if (!source)
    return std::nullopt;
  Value number = source.getNumber();
  if (numbersAreTensors && !matchPattern(number, m_Constant()))
    return std::nullopt;
  // The conversion remaps dynamic scalars, but not constants.
  Value converted = number;
  if (!matchPattern(number, m_Constant()))
    converted = builder.getRemappedValue(number);
  if (!converted)
    return std::nullopt;
  return makeNumber(number, converted);
}

NumberOperand OpLowering::number(OpArgument argument) const {
  return makeNumber(argument, operands[positionOf(argument)]);
}

int64_t OpLowering::constantInteger(Value value) const {
  if (auto boolean = value.getDefiningOp<torch::ConstantBoolOp>())
    return boolean.getValueAttr().getValue();
  if (auto constant = value.getDefiningOp<torch::ConstantIntOp>())
    return constant.getValueAttr().getInt();
  isContradictory = true;
  return 0;
}

int64_t OpLowering::integer(OpArgument argument) const {
  return constantInteger(argument);
}

double OpLowering::floating(OpArgument argument) const {
  std::optional<double> value = number(argument).asDouble();
  isContradictory |= !value;
  return value.value_or(0);
}

bool OpLowering::boolean(OpArgument argument) const {
  return constantInteger(argument) != 0;
}

StringRef OpLowering::string(OpArgument argument) const {
  if (auto constant = argument.getDefiningOp<torch::ConstantStrOp>())
    return constant.getValueAttr().getValue();
  isContradictory = true;
  return "";
}

SmallVector<int64_t> OpLowering::integers(OpArgument argument) const {
  SmallVector<int64_t> values;
  if (auto list = argument.getDefiningOp<torch::PrimListConstructOp>())
    for (Value value : list.getElements())
      values.push_back(constantInteger(value));
  return values;
}

SmallVector<NumberOperand> OpLowering::numbers(OpArgument argument) const {
  SmallVector<NumberOperand> numbers;
  auto list = argument.getDefiningOp<torch::PrimListConstructOp>();
  if (!list)
    return numbers;
  for (Value value : list.getElements()) {
    bool isKnown = matchPattern(value, m_Constant());
    numbers.push_back(
        makeNumber(value, isKnown ? value : builder.getRemappedValue(value)));
  }
  return numbers;
}

bool OpLowering::isEmptyList(OpArgument argument) const {
  auto list = argument.getDefiningOp<torch::PrimListConstructOp>();
  return list && list.getElements().empty();
}

std::optional<int64_t> OpLowering::optionalInteger(OpArgument argument) const {
  if (isNone(argument))
    return std::nullopt;
  return integer(argument);
}

std::optional<double> OpLowering::optionalFloating(OpArgument argument) const {
  if (isNone(argument))
    return std::nullopt;
  return floating(argument);
}

StringRef OpLowering::optionalString(OpArgument argument,
                                     StringRef none) const {
  return isNone(argument) ? none : string(argument);
}

static int64_t fromFront(int64_t dimension, int64_t rank) {
  return dimension < 0 ? dimension + std::max<int64_t>(rank, 1) : dimension;
}

int64_t OpLowering::checkedDimension(int64_t dim, int64_t rank) const {
  dim = fromFront(dim, rank);
  if (dim >= 0 && dim < std::max<int64_t>(rank, 1))
    return dim;
  isContradictory = true;
  return 0;
}

int64_t OpLowering::dimension(OpArgument argument, int64_t rank) const {
  return checkedDimension(integer(argument), rank);
}

SmallVector<int64_t> OpLowering::dimensions(OpArgument argument,
                                            int64_t rank) const {
  SmallVector<int64_t> dims;
  // `dim` is an int in some overloads and an int list in others.
  if (isa<torch::IntType>(argument.getType()))
    dims.push_back(integer(argument));
  else
    dims = integers(argument);
  for (int64_t &dim : dims)
    dim = checkedDimension(dim, rank);
  if (dims.empty())
    dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  // dim 0 and -1 are valid for a rank-0 tensor, which has no dimensions.
  if (rank == 0)
    dims.clear();
  llvm::sort(dims);
  dims.erase(llvm::unique(dims), dims.end());
  return dims;
}

SmallVector<Value> OpLowering::tensorList(OpArgument argument) const {
  SmallVector<Value> values;
  auto list = argument.getDefiningOp<torch::PrimListConstructOp>();
  for (Value value : list.getElements()) {
    bool none = isa<torch::NoneType>(value.getType()) ||
                matchPattern(value, m_Op<torch::ConstantNoneOp>());
    values.push_back(none ? Value() : builder.getRemappedValue(value));
  }
  return values;
}

SmallVector<Type> OpLowering::tensorListDtypes(OpArgument argument) const {
  SmallVector<Type> dtypes;
  auto list = argument.getDefiningOp<torch::PrimListConstructOp>();
  for (Value value : list.getElements()) {
    auto type = dyn_cast<torch::ValueTensorType>(value.getType());
    dtypes.push_back(type ? type.getDtype() : Type());
  }
  return dtypes;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

static torch::ValueTensorType resultTensorType(Operation *op, unsigned result) {
  return cast<torch::ValueTensorType>(op->getResult(result).getType());
}

RankedTensorType torch_ltc::storageTensorOf(torch::ValueTensorType type) {
  SmallVector<int64_t> sizes(type.getSizes());
  Type dtype = type.getDtype();
  if (auto complex = dyn_cast<ComplexType>(dtype)) {
    sizes.push_back(2);
    dtype = complex.getElementType();
  }
  return RankedTensorType::get(sizes, storageTypeOf(dtype));
}

RankedTensorType OpLowering::resultType(unsigned result) const {
  return storageTensorOf(resultTensorType(op, result));
}

ArrayRef<int64_t> OpLowering::resultSizes(unsigned result) const {
  return resultTensorType(op, result).getSizes();
}

Type OpLowering::resultDtype(unsigned result) const {
  return resultTensorType(op, result).getDtype();
}

Value OpLowering::checkBounds(Value indices, int64_t lower, int64_t upper) {
  auto type = cast<RankedTensorType>(indices.getType());
  Type element = type.getElementType();
  if (type.getNumElements() == 0 ||
      !(element.isInteger(32) || element.isInteger(64)))
    return indices;
  return ltc::CheckBoundsOp::create(builder, loc, type, indices,
                                    builder.getI64IntegerAttr(lower),
                                    builder.getI64IntegerAttr(upper));
}

LogicalResult OpLowering::failIfContradictory() const {
  if (!isContradictory && !tensors.isContradictory)
    return success();
  return op->emitError() << name << " has arguments or types that contradict "
                         << "each other" << userLocationSuffix(op->getLoc());
}

LogicalResult OpLowering::replaceWith(ValueRange results) {
  SmallVector<Value> reshaped;
  if (failed(failIfContradictory()))
    return failure();
  for (auto [number, value] : llvm::enumerate(results)) {
    RankedTensorType expected = resultType(number);
    // No computation is emitted for a result without elements.
    if (expected.getNumElements() == 0)
      value = tensors.zeros(expected.getShape(), expected.getElementType());
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getNumElements() == expected.getNumElements())
      value = tensors.reshape(value, expected.getShape());
    if (value.getType() != expected)
      return op->emitError()
             << "the lowering of " << name << " made a " << value.getType()
             << " where the op's type is " << expected;
    reshaped.push_back(value);
  }
  builder.replaceOp(op, reshaped);
  return success();
}

LogicalResult OpLowering::fail(const Twine &reason) const {
  return op->emitError() << name << " has no lowering to " << targetName << ": "
                         << reason << userLocationSuffix(op->getLoc());
}
