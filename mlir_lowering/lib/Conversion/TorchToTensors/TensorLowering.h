//===- TensorLowering.h - Lowering of one torch op to a target --*- C++ -*-===//
//
// The interface of a lowering. It consists of `OpLowering`, which reads the
// op's arguments, and the target's operations. Each family of ops adds its
// lowerings to the table in `populate<Family>TensorLowerings`; both targets use
// the table.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOTENSORS_TENSORLOWERING_H
#define TORCH_LTC_CONVERSION_TORCHTOTENSORS_TENSORLOWERING_H

#include "TensorTarget.h"

#include "../TorchToLinalg/OpLowering.h"

namespace mlir::torch_ltc {

class TensorLowering : public OpLowering {
public:
  /// Emits one element of the result; `elements` are the inputs' elements, and
  /// the dynamic scalars of `op` are values of type f64, i64 or i1.
  using ScalarBody =
      function_ref<Value(OpBuilder &, OpLowering &op, ValueRange elements)>;

  TensorLowering(Operation *op, StringRef name, ValueRange operands,
                 ConversionPatternRewriter &builder, TensorTarget &target)
      : OpLowering(op, name, operands, builder, target.getName(),
                   /*numbersAreTensors=*/true),
        target(target) {}

  TensorTarget &target;

  /// Emits a tensor of the sizes `sizes` whose elements `body` computes from
  /// those of the broadcast inputs: the body's arith and math ops become the
  /// target's ops on tensors. `elementTypes` are the element types for the
  /// body, if they differ from the inputs'. The target rejects the op if the
  /// body returns null.
  Value compute(ArrayRef<int64_t> sizes, ValueRange inputs, ScalarBody body,
                ArrayRef<Type> elementTypes = {});
  /// Converts a tensor of dtype `from` to `to`, like torch's `to(dtype)`.
  Value convert(Value tensor, Type from, Type to);
  Value operandAs(OpArgument argument, Type dtype) {
    return convert(tensor(argument), this->dtype(argument), dtype);
  }
  /// The argument, a number, as a rank-0 tensor.
  Value numberTensor(OpArgument argument, Type dtype);

  TypedAttr scalar(Type dtype, double value);
  Value zeros(ArrayRef<int64_t> sizes, Type dtype);
  Value add(Value a, Value b, Type dtype);
  Value mul(Value a, Value b, Type dtype);
  Value select(Value condition, Value yes, Value no);
  /// Elementwise equality of integers.
  Value equal(Value a, Value b);
  Value constantIntegers(ArrayRef<int64_t> sizes, ArrayRef<int64_t> values,
                         Type elementType);
  Value constantBooleans(ArrayRef<int64_t> sizes, ArrayRef<bool> values);
  Value flatten(Value tensor);

  /// Replaces the op by `results`, which have the op's result dtypes and are
  /// reshaped to its result sizes. Emits an error if the target has rejected an
  /// operation.
  LogicalResult replaceWith(ValueRange results);
};

using TensorLoweringTable = LoweringTableOf<TensorLowering>;

void populateElementwiseTensorLowerings(TensorLoweringTable &table);
void populateReductionTensorLowerings(TensorLoweringTable &table);
void populateScanTensorLowerings(TensorLoweringTable &table);
void populateDataMovementTensorLowerings(TensorLoweringTable &table);
void populateLinearTensorLowerings(TensorLoweringTable &table);
void populateConvolutionTensorLowerings(TensorLoweringTable &table);
void populatePoolingTensorLowerings(TensorLoweringTable &table);
void populateIndexingTensorLowerings(TensorLoweringTable &table);
void populateScatterTensorLowerings(TensorLoweringTable &table);
void populateSortTensorLowerings(TensorLoweringTable &table);
void populateStridedTensorLowerings(TensorLoweringTable &table);
void populateConstructorTensorLowerings(TensorLoweringTable &table);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOTENSORS_TENSORLOWERING_H
