//===- Program.cpp - Building a program in the torch dialect --------------===//

#include "ProgramStorage.h"
#include "torch_ltc/Dialect/Ltc/Attributes.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Support/UserLocation.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::torch_ltc;

LtcProgramStorage::LtcProgramStorage(LtcCompiler compiler,
                                     std::shared_ptr<LtcCompilerContext> home,
                                     StringRef name)
    : compiler(compiler), home(std::move(home)), builder(context()) {
  Location loc = builder.getUnknownLoc();
  module = ModuleOp::create(loc);
  function = func::FuncOp::create(loc, name, builder.getFunctionType({}, {}));
  module->push_back(function);
  builder.setInsertionPointToEnd(function.addEntryBlock());
}

LtcValue LtcProgramStorage::define(Value value) {
  values.push_back(value);
  return {static_cast<uint32_t>(values.size() - 1)};
}

Value LtcProgramStorage::get(LtcValue value) {
  if (value.id < values.size() && values[value.id])
    return values[value.id];
  setError("value " + Twine(value.id) + " is not a value of the program");
  return nullptr;
}

void LtcProgramStorage::setError(const Twine &message) {
  if (error.empty())
    error = message.str();
}

Type torch_ltc::torchDType(MLIRContext *context, LtcDType dtype) {
  Builder builder(context);
  switch (dtype) {
  case LTC_DTYPE_BOOL:
    return builder.getI1Type();
  case LTC_DTYPE_UINT8:
    return builder.getIntegerType(8, /*isSigned=*/false);
  case LTC_DTYPE_INT8:
    return builder.getIntegerType(8, /*isSigned=*/true);
  case LTC_DTYPE_INT16:
    return builder.getIntegerType(16, /*isSigned=*/true);
  case LTC_DTYPE_INT32:
    return builder.getIntegerType(32, /*isSigned=*/true);
  case LTC_DTYPE_INT64:
    return builder.getIntegerType(64, /*isSigned=*/true);
  case LTC_DTYPE_FLOAT16:
    return builder.getF16Type();
  case LTC_DTYPE_BFLOAT16:
    return builder.getBF16Type();
  case LTC_DTYPE_FLOAT32:
    return builder.getF32Type();
  case LTC_DTYPE_FLOAT64:
    return builder.getF64Type();
  case LTC_DTYPE_COMPLEX64:
    return ComplexType::get(builder.getF32Type());
  case LTC_DTYPE_COMPLEX128:
    return ComplexType::get(builder.getF64Type());
  }
  return nullptr;
}

/// Returns null, and sets the program's error, if sizes or dtype are invalid.
static torch::ValueTensorType tensorType(LtcProgram program,
                                         LtcTensorType type) {
  MLIRContext *context = program->context();
  Type dtype = torchDType(context, type.dtype);
  ArrayRef<int64_t> sizes(type.sizes, type.rank);
  if (dtype && llvm::none_of(sizes, [](int64_t size) { return size < 0; }))
    return torch::ValueTensorType::get(context, sizes, dtype);
  program->setError("a tensor type needs sizes of at least 0 and a known "
                    "dtype; got the dtype number " +
                    Twine(static_cast<int>(type.dtype)));
  return nullptr;
}

static Location location(LtcProgram program, StringRef opName,
                         const LtcLocation *location) {
  MLIRContext *context = program->context();
  if (!location)
    return makeUserLocation(context, opName, "", 0, "");
  auto text = [](const char *chars) {
    return chars ? StringRef(chars) : StringRef();
  };
  return makeUserLocation(context, opName, text(location->file),
                          std::max(location->line, 0),
                          text(location->module_path), location->node);
}

LtcStatus ltcProgramCreate(LtcCompiler compiler, const char *name,
                           LtcProgram *program) {
  *program = new LtcProgramStorage(compiler, compiler->get(), name);
  return nullptr;
}

LtcStatus ltcProgramCreateInContextOf(LtcProgram other, const char *name,
                                      LtcProgram *program) {
  *program = new LtcProgramStorage(other->compiler, other->home, name);
  return nullptr;
}

void ltcProgramDestroy(LtcProgram program) { delete program; }

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

static constexpr LtcValue kNoValue = {UINT32_MAX};

static LtcValue addArgument(LtcProgram program, Type type,
                            ArrayRef<NamedAttribute> attributes) {
  func::FuncOp function = program->function;
  unsigned index = function.getNumArguments();
  (void)function.insertArgument(
      index, type, DictionaryAttr::get(program->context(), attributes),
      program->builder.getUnknownLoc());
  return program->define(function.getArgument(index));
}

LtcValue ltcProgramAddTensorParameter(LtcProgram program, LtcTensorType type,
                                      const char *name, int donatable) {
  torch::ValueTensorType tensor = tensorType(program, type);
  if (!tensor)
    return kNoValue;
  Builder &builder = program->builder;
  SmallVector<NamedAttribute> attributes;
  if (name)
    attributes.push_back(
        builder.getNamedAttr(kNameAttr, builder.getStringAttr(name)));
  if (donatable)
    attributes.push_back(
        builder.getNamedAttr(kDonatableAttr, builder.getUnitAttr()));
  return addArgument(program, tensor, attributes);
}

LtcValue ltcProgramAddIntParameter(LtcProgram program) {
  return addArgument(program, torch::IntType::get(program->context()), {});
}

LtcValue ltcProgramAddFloatParameter(LtcProgram program) {
  return addArgument(program, torch::FloatType::get(program->context()), {});
}

//===----------------------------------------------------------------------===//
// Constants and lists
//===----------------------------------------------------------------------===//

template <typename ConstantOp, typename ConstantType>
static LtcValue constant(LtcProgram program, Attribute value) {
  MLIRContext *context = program->context();
  Type type = ConstantType::get(context);
  auto [entry, isNew] = program->constants.try_emplace({type, value}, kNoValue);
  if (isNew) {
    OperationState state(program->builder.getUnknownLoc(),
                         ConstantOp::getOperationName());
    state.addTypes(type);
    if (!isa<UnitAttr>(value))
      state.addAttribute("value", value);
    entry->second =
        program->define(program->builder.create(state)->getResult(0));
  }
  return entry->second;
}

LtcValue ltcProgramConstantNone(LtcProgram program) {
  return constant<torch::ConstantNoneOp, torch::NoneType>(
      program, program->builder.getUnitAttr());
}
LtcValue ltcProgramConstantInt(LtcProgram program, int64_t value) {
  return constant<torch::ConstantIntOp, torch::IntType>(
      program, program->builder.getI64IntegerAttr(value));
}
LtcValue ltcProgramConstantFloat(LtcProgram program, double value) {
  return constant<torch::ConstantFloatOp, torch::FloatType>(
      program, program->builder.getF64FloatAttr(value));
}
LtcValue ltcProgramConstantBool(LtcProgram program, int value) {
  return constant<torch::ConstantBoolOp, torch::BoolType>(
      program, program->builder.getBoolAttr(value != 0));
}
LtcValue ltcProgramConstantString(LtcProgram program, const char *value) {
  return constant<torch::ConstantStrOp, torch::StringType>(
      program, program->builder.getStringAttr(value));
}

LtcValue ltcProgramConstantTensor(LtcProgram program, LtcTensorType type,
                                  const void *data, size_t bytes) {
  torch::ValueTensorType tensor = tensorType(program, type);
  if (!tensor)
    return kNoValue;
  Type dtype = tensor.getDtype();
  size_t elementBytes = llvm::divideCeil(dtype.getIntOrFloatBitWidth(), 8);
  size_t count = tensor.getNumElements();
  if (bytes != count * elementBytes) {
    program->setError("a constant of " + Twine(count) + " elements got " +
                      Twine(bytes) + " bytes");
    return kNoValue;
  }
  DenseElementsAttr elements;
  // An i1 literal is packed, but callers pass one byte for each element.
  if (dtype.isInteger(1)) {
    SmallVector<bool> bits(static_cast<const char *>(data),
                           static_cast<const char *>(data) + count);
    elements = DenseElementsAttr::get(tensor.getLiteralType(), bits);
  } else {
    elements = DenseElementsAttr::getFromRawBuffer(
        tensor.getLiteralType(),
        ArrayRef(static_cast<const char *>(data), bytes));
  }
  OpBuilder &builder = program->builder;
  return program->define(torch::ValueTensorLiteralOp::create(
      builder, builder.getUnknownLoc(), tensor, elements));
}

static Type listElementType(MLIRContext *context, LtcListKind kind) {
  Type tensor = torch::ValueTensorType::get(context, /*hasSizes=*/false, {},
                                            /*dtype=*/Type());
  switch (kind) {
  case LTC_LIST_INT:
    return torch::IntType::get(context);
  case LTC_LIST_FLOAT:
    return torch::FloatType::get(context);
  case LTC_LIST_BOOL:
    return torch::BoolType::get(context);
  case LTC_LIST_TENSOR:
    return tensor;
  case LTC_LIST_OPTIONAL_TENSOR:
    return torch::OptionalType::get(context, tensor);
  }
  return nullptr;
}

static bool getAll(LtcProgram program, const LtcValue *ids, size_t count,
                   SmallVectorImpl<Value> &values) {
  for (size_t i = 0; i < count; ++i) {
    Value value = program->get(ids[i]);
    if (!value)
      return false;
    values.push_back(value);
  }
  return true;
}

LtcValue ltcProgramList(LtcProgram program, LtcListKind kind,
                        const LtcValue *elements, size_t count) {
  Type element = listElementType(program->context(), kind);
  SmallVector<Value> values;
  if (!element)
    program->setError("there is no list kind " + Twine(static_cast<int>(kind)));
  if (!element || !getAll(program, elements, count, values))
    return kNoValue;
  for (Value value : values) {
    if (torch::isSubtype(value.getType(), element))
      continue;
    program->setError("a list has an element of the wrong type");
    return kNoValue;
  }
  OpBuilder &builder = program->builder;
  return program->define(torch::PrimListConstructOp::create(
      builder, builder.getUnknownLoc(),
      torch::ListType::get(element.getContext(), element), values));
}

LtcValue ltcProgramNumberToTensor(LtcProgram program, LtcValue number,
                                  LtcDType dtype, const LtcLocation *loc) {
  torch::ValueTensorType type = tensorType(program, {dtype, 0, nullptr});
  Value value = program->get(number);
  if (!type || !value)
    return kNoValue;
  if (!torch::isScalarType(value.getType())) {
    program->setError("a rank-0 tensor must be created from an int or a float");
    return kNoValue;
  }
  return program->define(torch::PrimNumToTensorScalarOp::create(
      program->builder, location(program, "", loc), type, value));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static bool hasListResult(StringRef name) {
  static const llvm::StringSet<> names = {
#define LIST_RESULT_OP(name) name,
#include "torch_ltc/Dialect/Torch/ListResultOps.inc"
#undef LIST_RESULT_OP
  };
  return names.contains(name);
}

/// Creates the op. If the op returns a list (for example, aten.split.Tensor),
/// its only result is the list, which the caller must unpack.
static Operation *createOp(OpBuilder &builder, Location loc, StringRef name,
                           ValueRange operands, ArrayRef<Type> resultTypes) {
  MLIRContext *context = builder.getContext();
  OperationName operationName(name, context);
  if (!operationName.isRegistered())
    return torch::OperatorOp::create(builder, loc, resultTypes, name, operands);
  OperationState state(loc, operationName);
  state.addOperands(operands);
  if (!hasListResult(name)) {
    state.addTypes(resultTypes);
    return builder.create(state);
  }
  state.addTypes(
      torch::ListType::get(context, listElementType(context, LTC_LIST_TENSOR)));
  return builder.create(state);
}

static LtcStatus takeError(LtcProgram program) {
  if (program->error.empty())
    return nullptr;
  return makeStatus(program->error);
}

LtcStatus ltcProgramAppend(LtcProgram program, const char *name,
                           const LtcValue *operands, size_t operand_count,
                           const LtcTensorType *result_types,
                           size_t result_count, const LtcLocation *loc,
                           LtcValue *results) {
  SmallVector<Value> values;
  (void)getAll(program, operands, operand_count, values);
  SmallVector<Type> types;
  for (size_t i = 0; i < result_count; ++i)
    types.push_back(tensorType(program, result_types[i]));
  if (LtcStatus error = takeError(program))
    return error;

  OpBuilder &builder = program->builder;
  DiagnosticCollector diagnostics(program->context());
  std::string fullName = ("torch." + Twine(name)).str();
  Location where = location(program, fullName, loc);
  Operation *op = createOp(builder, where, fullName, values, types);
  if (failed(verify(op))) {
    op->erase();
    return makeStatus(diagnostics.text(fullName + ": not a valid op"));
  }
  if (hasListResult(fullName))
    op = torch::PrimListUnpackOp::create(builder, where, types,
                                         op->getResult(0));
  for (auto [index, result] : llvm::enumerate(op->getResults()))
    results[index] = program->define(result);
  return nullptr;
}

LtcStatus ltcProgramSetOutputs(LtcProgram program, const LtcValue *outputs,
                               const int64_t *updated_parameters,
                               size_t count) {
  SmallVector<Value> values;
  (void)getAll(program, outputs, count, values);
  if (program->finished)
    program->setError("the program already has outputs");
  if (LtcStatus error = takeError(program))
    return error;
  OpBuilder &builder = program->builder;
  func::ReturnOp::create(builder, builder.getUnknownLoc(), values);
  func::FuncOp function = program->function;
  function.setType(builder.getFunctionType(function.getArgumentTypes(),
                                           ValueRange(values).getTypes()));
  for (size_t i = 0; updated_parameters && i < count; ++i)
    if (updated_parameters[i] >= 0)
      function.setResultAttr(i, kUpdatesAttr,
                             builder.getI64IntegerAttr(updated_parameters[i]));
  program->finished = true;
  return nullptr;
}
