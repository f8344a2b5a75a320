//===- UnifyTorchModules.cpp - The torch stage for all sizes --------------===//

#include "torch_ltc/Symbolic/UnifyModules.h"

#include "SizeExpressions.h"
#include "executable.pb.h"

#include "torch_ltc/Dialect/Torch/AtenOp.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Support/UserLocation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

#include <map>

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;
namespace runtime = ::torch_ltc::runtime;

namespace {

using OpSamples = std::array<Operation *, kNumSamples>;
using ValueSamples = std::array<Value, kNumSamples>;

/// The sizes of a value in all samples, and whether any size differs between
/// samples.
struct VaryingSizes {
  SmallVector<SizeSamples> sizes; ///< of all dimensions
  bool vary = false;
};

class TorchUnifier {
public:
  TorchUnifier(ArrayRef<ModuleOp> samples, ArrayRef<SymbolicSize> symbols,
               ArrayRef<SizeSamples> checked);

  /// Compares the samples' functions, and fits expressions to the numbers that
  /// differ between them.
  LogicalResult compare();
  /// Rewrites the first sample's function.
  LogicalResult rewrite();

  /// For each symbol, whether it is an additional parameter of the function.
  SmallVector<bool> parameters;

private:
  InFlightDiagnostic emitFailure(Operation *op) {
    return op->emitError("the program has no form for all sizes: ");
  }
  /// Returns text such as "torch.aten.view (model.py:12)".
  static std::string nameOf(Operation *op) {
    return op->getName().getStringRef().str() +
           userLocationSuffix(op->getLoc());
  }
  LogicalResult findOps();
  LogicalResult compareOps(const OpSamples &ops);
  LogicalResult compareOperands(const OpSamples &ops);
  LogicalResult compareConstants(const OpSamples &ops, unsigned operand);
  FailureOr<VaryingSizes> sizesOf(const OpSamples &ops,
                                  const ValueSamples &values);
  void addSizes();
  void number(const ValueSamples &values);

  void findValue(unsigned symbol);
  LogicalResult setSizes(Value value, const VaryingSizes &sizes,
                         Operation *before);
  void replaceNumbers();

  std::array<func::FuncOp, kNumSamples> functions;
  SmallVector<OpSamples> ops; ///< without constants
  std::array<DenseMap<Value, unsigned>, kNumSamples> positions;
  unsigned numPositions = 0;

  ArrayRef<SymbolicSize> symbols;
  ArrayRef<SizeSamples> checked;
  NumberFitter fitter;
  SmallVector<std::pair<Value, VaryingSizes>> varying;
  struct VaryingNumber {
    Operation *op;
    unsigned operand;
    NumberCode code;
  };
  SmallVector<VaryingNumber> numbers;

  // Values in the rewritten function.
  SmallVector<Value> markers; ///< results of torch.symbolic_int
  SmallVector<Value> values;  ///< of symbols; null for those not needed
  Operation *firstOp = nullptr;
};

SmallVector<SizeSamples> standInsOf(ArrayRef<SymbolicSize> symbols) {
  return llvm::map_to_vector(
      symbols, [](const SymbolicSize &symbol) { return symbol.standIns; });
}

} // namespace

TorchUnifier::TorchUnifier(ArrayRef<ModuleOp> samples,
                           ArrayRef<SymbolicSize> symbols,
                           ArrayRef<SizeSamples> checked)
    : symbols(symbols), checked(checked), fitter(standInsOf(symbols)) {
  for (auto [function, module] : llvm::zip_equal(functions, samples))
    function = *ModuleOp(module).getOps<func::FuncOp>().begin();
}

void TorchUnifier::number(const ValueSamples &values) {
  for (unsigned s = 0; s < kNumSamples; ++s)
    positions[s][values[s]] = numPositions;
  ++numPositions;
}

LogicalResult TorchUnifier::findOps() {
  std::array<SmallVector<Operation *>, kNumSamples> all;
  for (unsigned s = 0; s < kNumSamples; ++s)
    for (Operation &op : functions[s].getBody().front())
      if (!op.hasTrait<OpTrait::ConstantLike>() ||
          isa<ValueTensorLiteralOp>(op))
        all[s].push_back(&op);
  for (unsigned s = 1; s < kNumSamples; ++s) {
    for (auto [op, other] : llvm::zip(all[0], all[s]))
      if (op->getName() != other->getName())
        return emitFailure(op)
               << "it has " << nameOf(op) << " at some sizes and "
               << nameOf(other) << " at others";
    if (all[s].size() != all[0].size())
      return emitFailure(functions[0]) << "its ops depend on the sizes";
  }
  for (size_t i = 0; i < all[0].size(); ++i)
    for (auto [sample, op] : llvm::zip_equal(all, ops.emplace_back()))
      op = sample[i];
  return success();
}

FailureOr<VaryingSizes> TorchUnifier::sizesOf(const OpSamples &ops,
                                              const ValueSamples &values) {
  auto type = dyn_cast<ValueTensorType>(values[0].getType());
  VaryingSizes result;
  for (unsigned s = 1; s < kNumSamples; ++s) {
    auto other = dyn_cast<ValueTensorType>(values[s].getType());
    bool alike = type ? other && other.getDtype() == type.getDtype() &&
                            other.getRank() == type.getRank()
                      : values[s].getType() == values[0].getType();
    if (!alike)
      return emitFailure(ops[0]) << "a value of " << nameOf(ops[0])
                                 << " has a type that depends on the sizes";
  }
  if (!type)
    return result;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    SizeSamples size;
    for (unsigned s = 0; s < kNumSamples; ++s)
      size[s] = cast<ValueTensorType>(values[s].getType()).getSizes()[d];
    result.sizes.push_back(size);
    result.vary |= !llvm::all_equal(size);
  }
  return result;
}

/// Adds the sizes to the fitter, which then finds products of them.
void TorchUnifier::addSizes() {
  for (const SizeSamples &size : checked)
    fitter.addSize(size);
  for (auto &[value, varyingSizes] : varying)
    for (const SizeSamples &size : varyingSizes.sizes)
      fitter.addSize(size);
}

LogicalResult TorchUnifier::compareConstants(const OpSamples &ops,
                                             unsigned operand) {
  std::string argument = describeArgument(ops[0]->getOpOperand(operand));
  OpSamples constants;
  for (unsigned s = 0; s < kNumSamples; ++s)
    constants[s] = ops[s]->getOperand(operand).getDefiningOp();
  std::array<Attribute, kNumSamples> attributes;
  for (unsigned s = 0; s < kNumSamples; ++s) {
    if (constants[s]->getName() != constants[0]->getName())
      return emitFailure(ops[0])
             << argument << " of " << nameOf(ops[0]) << " differs in its type";
    attributes[s] = constants[s]->getAttrDictionary();
  }
  if (llvm::all_equal(attributes))
    return success();
  std::optional<NumberCode> code;
  if (isa<ConstantIntOp>(constants[0])) {
    SizeSamples number;
    for (unsigned s = 0; s < kNumSamples; ++s)
      number[s] = cast<ConstantIntOp>(constants[s]).getValueAttr().getInt();
    code = fitter.fit(number);
  } else if (isa<ConstantFloatOp>(constants[0])) {
    FloatSamples number;
    for (unsigned s = 0; s < kNumSamples; ++s)
      number[s] =
          cast<ConstantFloatOp>(constants[s]).getValue().convertToDouble();
    code = fitter.fitFloat(number, /*bits=*/64);
  }
  if (!code)
    return emitFailure(ops[0]) << argument << " of " << nameOf(ops[0])
                               << " isn't a known function of the sizes";
  numbers.push_back({ops[0], operand, std::move(*code)});
  return success();
}

LogicalResult TorchUnifier::compareOperands(const OpSamples &ops) {
  auto isConstant = [](Value value) {
    Operation *op = value.getDefiningOp();
    return op && op->hasTrait<OpTrait::ConstantLike>() &&
           !isa<ValueTensorLiteralOp>(op);
  };
  for (unsigned i = 0; i < ops[0]->getNumOperands(); ++i) {
    bool constant = isConstant(ops[0]->getOperand(i));
    for (unsigned s = 1; s < kNumSamples; ++s)
      if (isConstant(ops[s]->getOperand(i)) != constant ||
          (!constant && positions[s].lookup(ops[s]->getOperand(i)) !=
                            positions[0].lookup(ops[0]->getOperand(i))))
        return emitFailure(ops[0])
               << nameOf(ops[0]) << " has operands that depend on the sizes";
    if (constant && failed(compareConstants(ops, i)))
      return failure();
  }
  return success();
}

LogicalResult TorchUnifier::compareOps(const OpSamples &ops) {
  for (unsigned s = 1; s < kNumSamples; ++s)
    if (ops[s]->getNumOperands() != ops[0]->getNumOperands() ||
        ops[s]->getNumResults() != ops[0]->getNumResults() ||
        ops[s]->getAttrDictionary() != ops[0]->getAttrDictionary())
      return emitFailure(ops[0]) << nameOf(ops[0]) << " depends on the sizes";
  for (unsigned i = 0; i < ops[0]->getNumResults(); ++i) {
    ValueSamples results;
    for (unsigned s = 0; s < kNumSamples; ++s)
      results[s] = ops[s]->getResult(i);
    FailureOr<VaryingSizes> sizes = sizesOf(ops, results);
    if (failed(sizes))
      return failure();
    if (sizes->vary)
      varying.push_back({results[0], *sizes});
    number(results);
  }
  return success();
}

LogicalResult TorchUnifier::compare() {
  if (failed(findOps()))
    return failure();
  OpSamples places;
  for (unsigned s = 0; s < kNumSamples; ++s) {
    places[s] = functions[s];
    if (functions[s].getNumArguments() != functions[0].getNumArguments())
      return emitFailure(functions[0]) << "its parameters depend on the sizes";
  }
  for (unsigned i = 0; i < functions[0].getNumArguments(); ++i) {
    ValueSamples arguments;
    for (unsigned s = 0; s < kNumSamples; ++s)
      arguments[s] = functions[s].getArgument(i);
    FailureOr<VaryingSizes> sizes = sizesOf(places, arguments);
    if (failed(sizes))
      return failure();
    if (sizes->vary)
      varying.push_back({arguments[0], *sizes});
    number(arguments);
  }
  for (const OpSamples &op : ops)
    if (failed(compareOps(op)))
      return failure();
  addSizes();
  for (const OpSamples &op : ops)
    if (failed(compareOperands(op)))
      return failure();
  // `rewrite` relies on an expression for each size that varies.
  for (auto &[value, sizes] : varying)
    for (const SizeSamples &size : sizes.sizes)
      if (!llvm::all_equal(size) && !fitter.fit(size)) {
        Operation *op = value.getDefiningOp();
        return emitFailure(op ? op : functions[0])
               << "a size of " << (op ? nameOf(op) : std::string("a parameter"))
               << " isn't a known function of the sizes that vary";
      }
  return success();
}

/// Sets the sizes of `value` that vary to `?`, and states them as expressions
/// of symbols in front of the op `before`.
LogicalResult TorchUnifier::setSizes(Value value, const VaryingSizes &sizes,
                                     Operation *before) {
  auto type = cast<ValueTensorType>(value.getType());
  MLIRContext *context = type.getContext();
  SmallVector<int64_t> known(type.getSizes());
  SmallVector<AffineExpr> expressions;
  for (auto [size, samples] : llvm::zip_equal(known, sizes.sizes)) {
    expressions.push_back(getAffineConstantExpr(size, context));
    if (llvm::all_equal(samples))
      continue;
    size = ShapedType::kDynamic;
    expressions.back() = sizeExpression(*fitter.fit(samples), context);
  }
  value.setType(ValueTensorType::get(context, known, type.getDtype()));
  // Keep only the symbols that the expressions use.
  SmallVector<Value> used;
  SmallVector<AffineExpr> renamed(symbols.size(),
                                  getAffineConstantExpr(0, context));
  for (unsigned i = 0; i < symbols.size(); ++i)
    if (llvm::any_of(expressions, [&](AffineExpr expression) {
          return expression.isFunctionOfSymbol(i);
        })) {
      renamed[i] = getAffineSymbolExpr(used.size(), context);
      used.push_back(markers[i]);
    }
  for (AffineExpr &expression : expressions)
    expression = expression.replaceSymbols(renamed);
  OpBuilder builder(before);
  BindSymbolicShapeOp::create(
      builder, before->getLoc(), value, used,
      AffineMapAttr::get(AffineMap::get(0, used.size(), expressions, context)));
  return success();
}

/// Sets the value of a symbol: computes it from a parameter's size, preferably
/// one that equals the symbol, or adds a parameter if no size determines it.
void TorchUnifier::findValue(unsigned symbol) {
  OpBuilder builder(firstOp);
  TorchNumberBuilder numberBuilder(builder, functions[0].getLoc());
  const SizeSamples &standIns = symbols[symbol].standIns;
  auto isSize = [&](const SizeSamples &size, int64_t factor, int64_t offset) {
    for (unsigned s = 0; s < kNumSamples; ++s)
      if (size[s] != factor * standIns[s] + offset)
        return false;
    return true;
  };
  for (bool exact : {true, false})
    for (auto &[value, sizes] : varying) {
      if (value.getDefiningOp())
        continue;
      for (auto [dim, size] : llvm::enumerate(sizes.sizes)) {
        int64_t factor =
            exact ? 1 : (size[1] - size[0]) / (standIns[1] - standIns[0]);
        int64_t offset = exact ? 0 : size[0] - factor * standIns[0];
        if (factor > 0 && isSize(size, factor, offset)) {
          values[symbol] = numberBuilder.solveSize(value, dim, factor, offset);
          return;
        }
      }
    }
  func::FuncOp function = functions[0];
  unsigned position = function.getNumArguments();
  parameters[symbol] = true;
  auto attributes = DictionaryAttr::get(
      function.getContext(),
      builder.getNamedAttr(kSymbolAttr,
                           builder.getStringAttr(symbols[symbol].name)));
  (void)function.insertArgument(position, IntType::get(function.getContext()),
                                attributes, function.getLoc());
  values[symbol] = function.getArgument(position);
}

/// Calls `use` with each symbol of the code.
static void forEachSymbol(const NumberCode &code,
                          function_ref<void(unsigned)> use) {
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i] == runtime::SYMBOL)
      use(unsigned(code[i + 1]));
    if (code[i] == runtime::SYMBOL || code[i] == runtime::CONSTANT)
      ++i;
  }
}

void TorchUnifier::replaceNumbers() {
  SmallVector<bool> needed(symbols.size());
  for (const VaryingNumber &number : numbers)
    forEachSymbol(number.code, [&](unsigned symbol) { needed[symbol] = true; });
  // The parameters that `findValue` adds must be in the order of symbols.
  for (unsigned i = 0; i < symbols.size(); ++i)
    if (needed[i])
      findValue(i);
  std::map<NumberCode, Value> built;
  TorchNumberBuilder builder(OpBuilder(firstOp), functions[0].getLoc());
  for (const VaryingNumber &number : numbers) {
    Value &value = built[number.code];
    if (!value)
      value = builder.build(number.code, values);
    number.op->setOperand(number.operand, value);
  }
}

LogicalResult TorchUnifier::rewrite() {
  func::FuncOp function = functions[0];
  Block &body = function.getBody().front();
  firstOp = &body.front();
  values.resize(symbols.size());
  parameters.resize(symbols.size());
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  for (const SymbolicSize &symbol : symbols)
    markers.push_back(SymbolicIntOp::create(
        builder, function.getLoc(), IntType::get(builder.getContext()),
        builder.getStringAttr(symbol.name),
        builder.getI64IntegerAttr(symbol.least),
        builder.getI64IntegerAttr(symbol.most)));
  for (auto &[value, sizes] : varying) {
    Operation *op = value.getDefiningOp();
    if (failed(setSizes(value, sizes, op ? op->getNextNode() : firstOp)))
      return failure();
  }
  replaceNumbers();
  SmallVector<Operation *> unused;
  for (Operation &op : body)
    if (op.use_empty() && op.hasTrait<OpTrait::ConstantLike>())
      unused.push_back(&op);
  for (Operation *op : unused)
    op->erase();
  function.setType(FunctionType::get(function.getContext(),
                                     body.getArgumentTypes(),
                                     body.getTerminator()->getOperandTypes()));
  return success();
}

FailureOr<OwningOpRef<ModuleOp>> mlir::torch_ltc::unifyTorchModules(
    ArrayRef<ModuleOp> samples, ArrayRef<SymbolicSize> symbols,
    ArrayRef<SizeSamples> checked, SmallVectorImpl<bool> &parameters) {
  OwningOpRef<ModuleOp> result = ModuleOp(samples[0]).clone();
  SmallVector<ModuleOp> modules(samples);
  modules[0] = *result;
  TorchUnifier unifier(modules, symbols, checked);
  if (failed(unifier.compare()) || failed(unifier.rewrite()))
    return failure();
  parameters.assign(unifier.parameters);
  return result;
}

LogicalResult mlir::torch_ltc::verifySameTorchModule(ModuleOp module,
                                                     ModuleOp other) {
  // Without symbols, no expression explains a difference, so each difference is
  // an error.
  SmallVector<ModuleOp> samples(kNumSamples, other);
  samples[0] = module;
  return TorchUnifier(samples, {}, {}).compare();
}
