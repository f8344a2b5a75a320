//===- GeneralizeKernel.cpp - One kernel for all sizes --------------------===//

#include "GeneralizeKernel.h"

#include "torch_ltc/Support/SeparateConstants.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::torch_ltc;

namespace {

class Generalizer {
public:
  Generalizer(ArrayRef<LLVM::LLVMFuncOp> samples, NumberFitter &fitter)
      : samples(samples), fitter(fitter), builder(samples[0]->getContext()) {}

  FailureOr<std::vector<NumberCode>> run();

private:
  using OpSamples = std::array<Operation *, kNumSamples>;

  LogicalResult differ(Operation *op, const Twine &what) {
    return op->emitError("the program has no form for all sizes: ") << what;
  }
  bool haveSameOperands(const OpSamples &ops);
  void numberValues(const OpSamples &ops);
  LogicalResult compare(const OpSamples &ops);
  LogicalResult replaceNumbers(const OpSamples &ops);
  LogicalResult replaceConstant(const OpSamples &ops);
  LogicalResult replaceIndices(const OpSamples &ops);
  FailureOr<Value> load(Operation *op, const SizeSamples &number, Type type);
  FailureOr<Value> loadFloat(Operation *op, const FloatSamples &number,
                             FloatType type);
  void addTable();
  Value loadCode(NumberCode code, Type type);

  SmallVector<LLVM::LLVMFuncOp, kNumSamples> samples;
  NumberFitter &fitter;
  OpBuilder builder;
  /// Position of each value in its function.
  std::array<DenseMap<Value, unsigned>, kNumSamples> positions;
  std::array<DenseMap<Block *, unsigned>, kNumSamples> blocks;
  Value table;
  std::vector<NumberCode> codes;
  std::map<NumberCode, Value> loaded; ///< 64-bit numbers
};

} // namespace

bool Generalizer::haveSameOperands(const OpSamples &ops) {
  for (unsigned s = 1; s < kNumSamples; ++s) {
    for (auto [a, b] :
         llvm::zip_equal(ops[0]->getOperands(), ops[s]->getOperands()))
      if (positions[0].lookup(a) != positions[s].lookup(b))
        return false;
    for (auto [a, b] :
         llvm::zip_equal(ops[0]->getSuccessors(), ops[s]->getSuccessors()))
      if (blocks[0].lookup(a) != blocks[s].lookup(b))
        return false;
  }
  return true;
}

void Generalizer::numberValues(const OpSamples &ops) {
  for (unsigned s = 0; s < kNumSamples; ++s)
    for (Value result : ops[s]->getResults())
      positions[s].try_emplace(result, positions[s].size() + 1);
}

/// Adds an argument for the table's address in front of the range [begin, end).
/// (insertArgument of LLVM 22's llvm.func fails if the function returns
/// nothing.)
void Generalizer::addTable() {
  LLVM::LLVMFuncOp kernel = samples[0];
  unsigned position = kernel.getNumArguments() - 2;
  Type pointer = LLVM::LLVMPointerType::get(kernel.getContext());
  SmallVector<Type> types(kernel.getArgumentTypes());
  SmallVector<DictionaryAttr> attributes;
  for (unsigned i = 0; i < types.size(); ++i)
    attributes.push_back(kernel.getArgAttrDict(i));
  types.insert(types.begin() + position, pointer);
  attributes.insert(
      attributes.begin() + position,
      builder.getDictionaryAttr(
          {builder.getNamedAttr("llvm.noalias", builder.getUnitAttr()),
           builder.getNamedAttr("llvm.readonly", builder.getUnitAttr())}));
  LLVM::LLVMFunctionType type = kernel.getFunctionType();
  kernel.setFunctionType(
      LLVM::LLVMFunctionType::get(type.getReturnType(), types));
  table = kernel.getBody().front().insertArgument(position, pointer,
                                                  kernel.getLoc());
  kernel.setAllArgAttrs(attributes);
}

/// Loads a number of the table as a value of `type`, at the kernel's entry.
/// Adds the number to the table if its code is new.
Value Generalizer::loadCode(NumberCode code, Type type) {
  OpBuilder::InsertionGuard guard(builder);
  LLVM::LLVMFuncOp kernel = samples[0];
  Location loc = kernel.getLoc();
  if (!table)
    addTable();
  Value &value = loaded[code];
  if (!value) {
    builder.setInsertionPointToStart(&kernel.getBody().front());
    Value address = LLVM::GEPOp::create(
        builder, loc, table.getType(), builder.getI64Type(), table,
        ArrayRef<LLVM::GEPArg>{int32_t(codes.size())});
    value = LLVM::LoadOp::create(builder, loc, builder.getI64Type(), address,
                                 /*alignment=*/8, /*isVolatile=*/false,
                                 /*isNonTemporal=*/false,
                                 /*isInvariant=*/true);
    codes.push_back(std::move(code));
  }
  if (type.isInteger(64))
    return value;
  builder.setInsertionPointAfterValue(value);
  auto bits = builder.getIntegerType(type.getIntOrFloatBitWidth());
  Value narrow = value;
  if (!bits.isInteger(64))
    narrow = LLVM::TruncOp::create(builder, loc, bits, value);
  if (isa<FloatType>(type))
    narrow = LLVM::BitcastOp::create(builder, loc, type, narrow);
  return narrow;
}

FailureOr<Value> Generalizer::load(Operation *op, const SizeSamples &number,
                                   Type type) {
  std::optional<NumberCode> code = fitter.fit(number);
  if (!code)
    return differ(op, "a number is " + unknownNumber(number));
  return loadCode(std::move(*code), type);
}

FailureOr<Value> Generalizer::loadFloat(Operation *op,
                                        const FloatSamples &number,
                                        FloatType type) {
  bool isKnown = type.isF32() || type.isF64();
  std::optional<NumberCode> code;
  if (isKnown)
    code = fitter.fitFloat(number, type.getWidth());
  if (!code)
    return differ(op, "a float is " + unknownNumber(number));
  return loadCode(std::move(*code), type);
}

LogicalResult Generalizer::replaceConstant(const OpSamples &ops) {
  std::array<Attribute, kNumSamples> values;
  for (unsigned s = 0; s < kNumSamples; ++s)
    values[s] = cast<LLVM::ConstantOp>(ops[s]).getValue();
  if (llvm::all_equal(values))
    return success();
  Type type = ops[0]->getResult(0).getType();
  FailureOr<Value> replacement = failure();
  if (llvm::all_of(values, llvm::IsaPred<IntegerAttr>)) {
    SizeSamples number;
    llvm::transform(values, number.begin(), [](Attribute value) {
      return cast<IntegerAttr>(value).getValue().getSExtValue();
    });
    replacement = load(ops[0], number, type);
  } else if (llvm::all_of(values, llvm::IsaPred<FloatAttr>)) {
    FloatSamples number;
    llvm::transform(values, number.begin(), [](Attribute value) {
      return cast<FloatAttr>(value).getValueAsDouble();
    });
    replacement = loadFloat(ops[0], number, cast<FloatType>(type));
  } else {
    return differ(ops[0], "a constant array depends on the sizes");
  }
  if (failed(replacement))
    return failure();
  ops[0]->getResult(0).replaceAllUsesWith(*replacement);
  return success();
}

/// Replaces the constant indices of a `getelementptr`, which are attributes of
/// the op.
LogicalResult Generalizer::replaceIndices(const OpSamples &ops) {
  std::array<LLVM::GEPOp, kNumSamples> addresses;
  for (unsigned s = 0; s < kNumSamples; ++s)
    addresses[s] = cast<LLVM::GEPOp>(ops[s]);
  if (!llvm::all_equal(llvm::map_range(addresses, [](LLVM::GEPOp op) {
        return op.getRawConstantIndices().size();
      })))
    return differ(ops[0], "addresses have different indices");
  SmallVector<LLVM::GEPArg> indices;
  bool isChanged = false;
  unsigned dynamic = 0;
  for (size_t i = 0; i < addresses[0].getRawConstantIndices().size(); ++i) {
    SizeSamples number;
    for (unsigned s = 0; s < kNumSamples; ++s)
      number[s] = addresses[s].getRawConstantIndices()[i];
    bool isDynamic = number[0] == LLVM::GEPOp::kDynamicIndex;
    if (llvm::all_equal(number)) {
      if (isDynamic)
        indices.push_back(addresses[0].getDynamicIndices()[dynamic++]);
      else
        indices.push_back(int32_t(number[0]));
      continue;
    }
    if (llvm::is_contained(number, int64_t(LLVM::GEPOp::kDynamicIndex)))
      return differ(ops[0], "addresses have different indices");
    FailureOr<Value> value = load(ops[0], number, builder.getI64Type());
    if (failed(value))
      return failure();
    indices.push_back(*value);
    isChanged = true;
  }
  if (!isChanged)
    return success();
  LLVM::GEPOp old = addresses[0];
  builder.setInsertionPoint(old);
  Value address = LLVM::GEPOp::create(builder, old.getLoc(), old.getType(),
                                      old.getElemType(), old.getBase(), indices,
                                      old.getNoWrapFlags());
  old.getResult().replaceAllUsesWith(address);
  return success();
}

LogicalResult Generalizer::compare(const OpSamples &ops) {
  for (Operation *other : ArrayRef(ops).drop_front())
    if (other->getName() != ops[0]->getName() ||
        other->getOperandTypes() != ops[0]->getOperandTypes() ||
        other->getResultTypes() != ops[0]->getResultTypes() ||
        other->getNumSuccessors() != ops[0]->getNumSuccessors())
      return differ(ops[0], "the op depends on the sizes");
  if (!haveSameOperands(ops))
    return differ(ops[0], "its operands depend on the sizes");
  if (isa<LLVM::ConstantOp, LLVM::GEPOp>(ops[0]))
    return success(); // see replaceNumbers
  for (Operation *other : ArrayRef(ops).drop_front())
    if (other->getAttrDictionary() != ops[0]->getAttrDictionary())
      return differ(ops[0], "its attributes depend on the sizes");
  return success();
}

LogicalResult Generalizer::replaceNumbers(const OpSamples &ops) {
  if (isa<LLVM::ConstantOp>(ops[0]))
    return replaceConstant(ops);
  if (isa<LLVM::GEPOp>(ops[0]))
    return replaceIndices(ops);
  return success();
}

FailureOr<std::vector<NumberCode>> Generalizer::run() {
  std::array<SmallVector<Operation *>, kNumSamples> ops;
  for (unsigned s = 0; s < kNumSamples; ++s) {
    LLVM::LLVMFuncOp kernel = samples[s];
    separateConstants(kernel.getBody());
    for (Block &block : kernel.getBody()) {
      blocks[s].try_emplace(&block, blocks[s].size());
      for (BlockArgument argument : block.getArguments())
        positions[s].try_emplace(argument, positions[s].size() + 1);
      for (Operation &op : block)
        ops[s].push_back(&op);
    }
  }
  for (unsigned s = 1; s < kNumSamples; ++s)
    if (ops[s].size() != ops[0].size() ||
        samples[s].getFunctionType() != samples[0].getFunctionType())
      return samples[0].emitError("the program has no form for all sizes: the "
                                  "structure of a kernel depends on the "
                                  "sizes");
  auto sampleOf = [&](size_t i) {
    OpSamples sample;
    for (unsigned s = 0; s < kNumSamples; ++s)
      sample[s] = ops[s][i];
    return sample;
  };
  for (size_t i = 0; i < ops[0].size(); ++i)
    numberValues(sampleOf(i));
  for (size_t i = 0; i < ops[0].size(); ++i)
    if (failed(compare(sampleOf(i))))
      return failure();
  for (size_t i = 0; i < ops[0].size(); ++i)
    if (failed(replaceNumbers(sampleOf(i))))
      return failure();
  for (Operation *op : llvm::reverse(ops[0]))
    if (op->use_empty() && isa<LLVM::ConstantOp, LLVM::GEPOp>(op))
      op->erase();
  return std::move(codes);
}

FailureOr<std::vector<NumberCode>>
mlir::torch_ltc::generalizeKernel(ArrayRef<LLVM::LLVMFuncOp> samples,
                                  NumberFitter &fitter) {
  return Generalizer(samples, fitter).run();
}
