//===- OpLowering.h - Lowering of one torch op to linalg --------*- C++ -*-===//
//
// A lowering is a function that gets an `OpLowering` and the op, reads the op's
// arguments by the names of the schema, and calls `replaceWith`:
//
//   static LogicalResult lowerFlip(OpLowering &op, AtenFlipOp args) {
//     ... op.tensor(args.getSelf()), op.integers(args.getDims()) ...
//
// One table maps op names ("aten.flip") to lowerings; each family of ops adds
// its lowerings in `populate<Family>Lowerings`.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_OPLOWERING_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_OPLOWERING_H

#include "ScalarBuilder.h"
#include "TensorBuilder.h"

#include "torch_ltc/Dialect/Torch/AtenOp.h"
#include "torch_ltc/Dialect/Torch/TorchTypes.h"

#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/StringMap.h"
#include <concepts>
#include <optional>

namespace mlir::torch_ltc {

/// The builtin tensor that stores a tensor with static sizes. A complex number
/// is stored as its real and its imaginary part, along an additional last dim.
RankedTensorType storageTensorOf(torch::ValueTensorType type);

/// A Python number that is an argument of an op: a constant or a dynamic
/// scalar.
struct NumberOperand {
  /// si64, f64 or i1.
  Type dtype;
  /// IntegerAttr or FloatAttr; null for a dynamic scalar.
  Attribute constant;
  /// The value, with the storage type of the dtype; null for a constant.
  Value value;

  /// Emits the number as `dtype` at the builder's insertion point.
  Value materialize(OpBuilder &builder, Location loc, Type dtype) const;
  /// The value of a constant, or none for a dynamic scalar.
  std::optional<double> asDouble() const;
};

/// An operand of an op, as the getters of the op's class return it. Unlike a
/// Value, it isn't created from the literal 0, so that an argument's position
/// instead of its name is a compile error.
struct OpArgument : Value {
  template <std::convertible_to<Value> T>
  OpArgument(T operand) : Value(operand) {}
};

class OpLowering {
public:
  /// `operands` are the op's operands with converted types; constants and lists
  /// are unchanged. `targetName` is the name of the target dialect in messages.
  /// `numbersAreTensors`: whether the target represents dynamic scalars as
  /// tensors.
  OpLowering(Operation *op, StringRef name, ValueRange operands,
             ConversionPatternRewriter &builder,
             StringRef targetName = "linalg", bool numbersAreTensors = false);

  Operation *op;
  /// The op's name without the dialect: "aten.add.Tensor".
  StringRef name;
  ConversionPatternRewriter &builder;
  Location loc;
  TensorBuilder tensors;

  /// All arguments, in the order of the schema.
  ArrayRef<Value> getArguments() const { return arguments; }
  bool isNone(OpArgument argument) const;
  bool isTensor(OpArgument argument) const;
  /// Whether the argument is an int, a float or a bool.
  bool isNumber(OpArgument argument) const;
  /// The arguments with converted types, in the order of the schema.
  ArrayRef<Value> getOperands() const { return operands; }
  unsigned positionOf(OpArgument argument) const;

  /// The argument as a builtin tensor.
  Value tensor(OpArgument argument) const {
    return operands[positionOf(argument)];
  }
  RankedTensorType tensorType(OpArgument argument) const;
  ArrayRef<int64_t> sizes(OpArgument argument) const;
  int64_t rank(OpArgument argument) const { return sizes(argument).size(); }
  /// Element type including its signedness.
  Type dtype(OpArgument argument) const;
  /// The number from which a tensor argument was created
  /// (prim.NumToTensor.Scalar).
  std::optional<NumberOperand> tensorAsNumber(OpArgument argument) const;

  /// The argument, which must be a number (neither a tensor nor none).
  NumberOperand number(OpArgument argument) const;

  /// Whether the argument is a dynamic scalar.
  bool isParameter(OpArgument argument) const {
    return isNumber(argument) && !number(argument).constant;
  }

  /// The value of a constant argument. If the argument isn't a constant,
  /// records a contradiction and returns 0 or "".
  int64_t integer(OpArgument argument) const;
  double floating(OpArgument argument) const;
  bool boolean(OpArgument argument) const;
  StringRef string(OpArgument argument) const;
  SmallVector<int64_t> integers(OpArgument argument) const;
  /// Elements of a list of ints, which may be dynamic scalars.
  SmallVector<NumberOperand> numbers(OpArgument argument) const;
  bool isEmptyList(OpArgument argument) const;
  std::optional<int64_t> optionalInteger(OpArgument argument) const;
  std::optional<double> optionalFloating(OpArgument argument) const;
  StringRef optionalString(OpArgument argument, StringRef none) const;

  /// The dimension that the argument names, counted from the front
  /// (non-negative).
  int64_t dimension(OpArgument argument, int64_t rank) const;
  /// The dimensions of a list, counted from the front, sorted and unique. The
  /// empty list stands for all dimensions.
  SmallVector<int64_t> dimensions(OpArgument argument, int64_t rank) const;

  /// Elements of a list of tensors; null for an element that is none.
  SmallVector<Value> tensorList(OpArgument argument) const;
  SmallVector<Type> tensorListDtypes(OpArgument argument) const;

  /// The type of a result's storage.
  RankedTensorType resultType(unsigned result = 0) const;
  ArrayRef<int64_t> resultSizes(unsigned result = 0) const;
  Type resultDtype(unsigned result = 0) const;
  bool isResultUsed(unsigned result) const {
    return !op->getResult(result).use_empty();
  }

  /// Returns `indices`, a tensor of integers, with a check that each element is
  /// in [lower, upper); eager PyTorch raises an error otherwise.
  Value checkBounds(Value indices, int64_t lower, int64_t upper);

  /// Replaces the op by `results`. A tensor that has the right number of
  /// elements but a different shape (for example, one that lacks the dimensions
  /// that `keepdim` keeps) is reshaped.
  LogicalResult replaceWith(ValueRange results);

  /// Records that arguments or types don't match the op's schema.
  /// `replaceWith` then rejects the op; until then, missing values are 0.
  void contradict() const { isContradictory = true; }
  /// Emits an error if a mismatch was recorded.
  LogicalResult failIfContradictory() const;

  /// Reports that this op can't be lowered. `reason` is a clause: "its mask is
  /// a tensor of bools".
  LogicalResult fail(const Twine &reason) const;

private:
  int64_t constantInteger(Value value) const;
  int64_t checkedDimension(int64_t dim, int64_t rank) const;

  SmallVector<Value> arguments;
  SmallVector<Value> operands;
  mutable bool isContradictory = false;
  StringRef targetName;
  bool numbersAreTensors;
};

/// A map from op names to lowerings, which read the op through a `Lowering`.
template <typename Lowering> class LoweringTableOf {
public:
  /// Properties of one op that the conversion uses.
  struct Entry {
    LogicalResult lower(Lowering &op) const { return call(op, function); }

    /// A function of some type, and a function that calls it. (This compiles
    /// faster than a std::function.)
    void (*function)();
    LogicalResult (*call)(Lowering &op, void (*function)());
    /// Positions of the arguments that may be dynamic scalars or lists of them.
    /// All other numbers and lists must be constants.
    SmallVector<unsigned, 2> dynamicScalars;
  };

  /// Adds the lowering of the ops of class `OpTy`.
  template <typename OpTy>
  void add(LogicalResult (*lower)(Lowering &, OpTy),
           torch::DynamicScalars scalars = torch::DynamicScalars::AsInOpTable) {
    auto call = [](Lowering &op, void (*function)()) {
      using Function = LogicalResult (*)(Lowering &, OpTy);
      return reinterpret_cast<Function>(function)(op, OpTy(op.op));
    };
    insert(OpTy::getOperationName().drop_front(StringRef("torch.").size()),
           reinterpret_cast<void (*)()>(lower), call,
           torch::dynamicScalarsOf<OpTy>(scalars));
  }
  /// Adds a lowering that reads no argument by its name.
  void add(StringRef name, LogicalResult (*lower)(Lowering &),
           ArrayRef<unsigned> dynamicScalars = {}) {
    auto call = [](Lowering &op, void (*function)()) {
      return reinterpret_cast<LogicalResult (*)(Lowering &)>(function)(op);
    };
    insert(name, reinterpret_cast<void (*)()>(lower), call, dynamicScalars);
  }
  /// The entry of the op, or null if it has no lowering.
  const Entry *find(StringRef name) const {
    auto it = entries.find(name);
    return it == entries.end() ? nullptr : &it->second;
  }
  /// The names of all ops, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto &entry : entries)
      result.push_back(entry.getKey().str());
    llvm::sort(result);
    return result;
  }

private:
  void insert(StringRef name, void (*function)(),
              LogicalResult (*call)(Lowering &, void (*)()),
              ArrayRef<unsigned> dynamicScalars) {
    entries[name] = {function, call, SmallVector<unsigned, 2>(dynamicScalars)};
  }

  llvm::StringMap<Entry> entries;
};

using LoweringTable = LoweringTableOf<OpLowering>;

/// Lowers an op with a tensor of complex numbers.
LogicalResult lowerComplex(OpLowering &op);

void populateElementwiseLowerings(LoweringTable &table);
void populateReductionLowerings(LoweringTable &table);
void populateScanLowerings(LoweringTable &table);
void populateSortLowerings(LoweringTable &table);
void populateDataMovementLowerings(LoweringTable &table);
void populateSliceLowerings(LoweringTable &table);
void populateStridedLowerings(LoweringTable &table);
void populateLinearLowerings(LoweringTable &table);
void populateAttentionLowerings(LoweringTable &table);
void populateConvolutionLowerings(LoweringTable &table);
void populatePoolingLowerings(LoweringTable &table);
void populateIndexingLowerings(LoweringTable &table);
void populateScatterLowerings(LoweringTable &table);
void populateEmbeddingLowerings(LoweringTable &table);
void populateConstructorLowerings(LoweringTable &table);
void populateComplexLowerings(LoweringTable &table);
void populateHostLowerings(LoweringTable &table);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_OPLOWERING_H
