//===- OpLowering.h - Lowering of one torch op to linalg --------*- C++ -*-===//
//
// A lowering is a function that gets an `OpLowering`, reads the op's operands
// by their positions in the schema, and calls `replaceWith`. One table maps op
// names ("aten.add.Tensor") to lowerings; each family of ops adds its lowerings
// in `populate<Family>Lowerings`.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_OPLOWERING_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_OPLOWERING_H

#include "ScalarBuilder.h"
#include "TensorBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchTypes.h"

#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/StringMap.h"
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

  unsigned getNumOperands() const { return original.size(); }
  bool isNone(unsigned position) const;
  bool isTensor(unsigned position) const;
  /// Whether the operand is an int, a float or a bool.
  bool isNumber(unsigned position) const;
  /// The operands with converted types.
  ArrayRef<Value> getOperands() const { return operands; }

  /// The operand as a builtin tensor.
  Value tensor(unsigned position) const { return operands[position]; }
  RankedTensorType tensorType(unsigned position) const;
  ArrayRef<int64_t> sizes(unsigned position) const;
  int64_t rank(unsigned position) const { return sizes(position).size(); }
  /// Element type including its signedness.
  Type dtype(unsigned position) const;
  /// The number from which a tensor operand was created
  /// (prim.NumToTensor.Scalar).
  std::optional<NumberOperand> tensorAsNumber(unsigned position) const;

  /// The operand, which must be a number (neither a tensor nor none).
  NumberOperand number(unsigned position) const;

  /// Whether the operand is a dynamic scalar.
  bool isParameter(unsigned position) const {
    return isNumber(position) && !number(position).constant;
  }

  /// The value of a constant operand. If the operand isn't a constant, records
  /// a contradiction and returns 0 or "".
  int64_t integer(unsigned position) const;
  double floating(unsigned position) const;
  bool boolean(unsigned position) const;
  StringRef string(unsigned position) const;
  SmallVector<int64_t> integers(unsigned position) const;
  /// Elements of a list of ints, which may be dynamic scalars.
  SmallVector<NumberOperand> numbers(unsigned position) const;
  bool isEmptyList(unsigned position) const;
  std::optional<int64_t> optionalInteger(unsigned position) const;
  std::optional<double> optionalFloating(unsigned position) const;
  StringRef optionalString(unsigned position, StringRef none) const;

  /// The dimension that the operand names, counted from the front
  /// (non-negative).
  int64_t dimension(unsigned position, int64_t rank) const;
  /// The dimensions of a list, counted from the front, sorted and unique. The
  /// empty list stands for all dimensions.
  SmallVector<int64_t> dimensions(unsigned position, int64_t rank) const;

  /// Elements of a list of tensors; null for an element that is none.
  SmallVector<Value> tensorList(unsigned position) const;
  SmallVector<Type> tensorListDtypes(unsigned position) const;

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
  Value element(unsigned position) const { return original[position]; }

  int64_t constantInteger(Value value) const;
  int64_t checkedDimension(int64_t dim, int64_t rank) const;

  SmallVector<Value> original;
  SmallVector<Value> operands;
  mutable bool isContradictory = false;
  StringRef targetName;
  bool numbersAreTensors;
};

/// A map from op names to lowerings, which read the op through a `Lowering`.
template <typename Lowering> class LoweringTableOf {
public:
  using Function = LogicalResult (*)(Lowering &);

  /// Properties of one op that the conversion uses.
  struct Entry {
    Function lower;
    /// Positions of the arguments that may be dynamic scalars or lists of them.
    /// All other numbers and lists must be constants.
    SmallVector<unsigned, 2> runtimeNumbers;
  };

  void add(StringRef name, Function lower,
           ArrayRef<unsigned> runtimeNumbers = {}) {
    entries[name] = {lower, SmallVector<unsigned, 2>(runtimeNumbers)};
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
