//===- elementwise.cpp - Sizes of elementwise results ---------------------===//

#include "shape/rules/rules.h"

using namespace torch_ltc;
using at::ScalarType;

bool shape_rules::self(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  addResult(results, dtype, arguments.sizes(0));
  return true;
}

bool shape_rules::broadcast(const Arguments &arguments, ScalarType dtype,
                            ResultShapes &results) {
  Sizes *sizes = nullptr;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].isTensor() || !arguments[i].toTensor().defined())
      continue;
    if (!sizes)
      sizes = &addResult(results, dtype, arguments.sizes(i)).sizes;
    else
      broadcastInto(*sizes, arguments.sizes(i));
  }
  return sizes;
}

// Throws unless `dtype` is a floating-point type. Used for ops whose results
// are unusual or undefined for some other dtypes, and whose Meta kernels accept
// more dtypes than their CPU kernels.
static void checkFloatingResult(const Arguments &arguments, ScalarType dtype) {
  TORCH_CHECK(c10::isFloatingType(dtype), arguments.opName(), " of dtype ",
              c10::toString(dtype));
}

bool shape_rules::floating_self(const Arguments &arguments, ScalarType dtype,
                                ResultShapes &results) {
  checkFloatingResult(arguments, dtype);
  return self(arguments, dtype, results);
}

// Ops of this rule support some integer dtypes; the Meta kernel checks which.
bool shape_rules::clipped_self(const Arguments &arguments, ScalarType dtype,
                               ResultShapes &results) {
  return c10::isFloatingType(dtype) && self(arguments, dtype, results);
}

bool shape_rules::floating_broadcast(const Arguments &arguments,
                                     ScalarType dtype, ResultShapes &results) {
  checkFloatingResult(arguments, dtype);
  return broadcast(arguments, dtype, results);
}

bool shape_rules::mish_backward(const Arguments &arguments, ScalarType dtype,
                                ResultShapes &results) {
  checkFloatingResult(arguments, dtype);
  // torch 2.13's kernel doesn't promote dtypes, because autograd calls it with
  // equal dtypes.
  return broadcast(arguments, arguments.dtype(1), results);
}

bool shape_rules::numeric_self(const Arguments &arguments, ScalarType dtype,
                               ResultShapes &results) {
  return dtype != ScalarType::Bool && self(arguments, dtype, results);
}

bool shape_rules::numeric_broadcast(const Arguments &arguments,
                                    ScalarType dtype, ResultShapes &results) {
  return dtype != ScalarType::Bool && broadcast(arguments, dtype, results);
}

// sub and rsub: their Meta kernels accept bool operands that eager rejects.
bool shape_rules::difference(const Arguments &arguments, ScalarType dtype,
                             ResultShapes &results) {
  int numBools = 0;
  for (size_t i : {0, 1})
    numBools +=
        arguments[i].isBool() ||
        (arguments[i].isTensor() && arguments.dtype(i) == ScalarType::Bool);
  TORCH_CHECK(numBools < 2,
              "Subtraction, the `-` operator, with two bool tensors is not "
              "supported. Use the `^` or `logical_xor()` operator instead.");
  TORCH_CHECK(numBools == 0,
              "Subtraction, the `-` operator, with a bool tensor is not "
              "supported. If you are trying to invert a mask, use the `~` or "
              "`logical_not()` operator instead.");
  return broadcast(arguments, dtype, results);
}

bool shape_rules::addcdiv(const Arguments &arguments, ScalarType dtype,
                          ResultShapes &results) {
  TORCH_CHECK(c10::isFloatingType(arguments.dtype(1)) ||
                  c10::isFloatingType(arguments.dtype(2)),
              "Integer division with addcdiv is no longer supported, and in a "
              "future release addcdiv will perform a true division of tensor1 "
              "and tensor2.");
  return broadcast(arguments, dtype, results);
}

bool shape_rules::integral_broadcast(const Arguments &arguments,
                                     ScalarType dtype, ResultShapes &results) {
  return c10::isIntegralType(dtype, /*includeBool=*/true) &&
         broadcast(arguments, dtype, results);
}

bool shape_rules::shift(const Arguments &arguments, ScalarType dtype,
                        ResultShapes &results) {
  return c10::isIntegralType(dtype, /*includeBool=*/false) &&
         broadcast(arguments, dtype, results);
}

bool shape_rules::same_dtype_broadcast(const Arguments &arguments,
                                       ScalarType dtype,
                                       ResultShapes &results) {
  checkSameDType(arguments, {0, 1});
  return broadcast(arguments, dtype, results);
}

// Both results have the broadcast sizes of the operands.
bool shape_rules::broadcast_pair(const Arguments &arguments, ScalarType dtype,
                                 ResultShapes &results) {
  if (!broadcast(arguments, dtype, results))
    return false;
  addResult(results, dtype, Sizes(results[0].sizes));
  return true;
}

bool shape_rules::masked_fill(const Arguments &arguments, ScalarType dtype,
                              ResultShapes &results) {
  TORCH_CHECK(arguments.dtype(1) == ScalarType::Bool,
              "masked_fill_ only supports boolean masks, but got mask with "
              "dtype ",
              c10::toString(arguments.dtype(1)));
  if (arguments[2].isTensor())
    TORCH_CHECK(arguments.rank(2) == 0,
                "masked_fill only supports a 0-dimensional value tensor, but "
                "got tensor with ",
                arguments.rank(2), " dimension(s).");
  broadcastInto(addResult(results, dtype, arguments.sizes(0)).sizes,
                arguments.sizes(1));
  return true;
}

bool shape_rules::clamp(const Arguments &arguments, ScalarType dtype,
                        ResultShapes &results) {
  bool isBounded = arguments.has(1);
  for (size_t i = 2; i < arguments.size(); ++i)
    isBounded |= arguments.has(i);
  TORCH_CHECK(isBounded,
              "torch.clamp: At least one of 'min' or 'max' must not be None");
  // clamp keeps the dtype of a wrapped number, unlike other ops.
  if (arguments.tensor(0).unsafeGetTensorImpl()->is_wrapped_number())
    return false;
  return numeric_broadcast(arguments, dtype, results);
}

bool shape_rules::lerp(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  TORCH_CHECK(arguments.dtype(0) == arguments.dtype(1), "expected dtype ",
              c10::toString(arguments.dtype(0)), " for `end` but got dtype ",
              c10::toString(arguments.dtype(1)));
  if (arguments[2].isTensor() && arguments.rank(2) > 0)
    TORCH_CHECK(arguments.dtype(0) == arguments.dtype(2), "expected dtype ",
                c10::toString(arguments.dtype(0)),
                " for `weight` but got dtype ",
                c10::toString(arguments.dtype(2)));
  return broadcast(arguments, dtype, results);
}

bool shape_rules::copy(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  checkExpandable(arguments.sizes(1), arguments.sizes(0));
  return self(arguments, dtype, results);
}

// log_sigmoid_forward: its buffer has the input's sizes on the CPU; on CUDA,
// the buffer is empty.
bool shape_rules::log_sigmoid(const Arguments &arguments, ScalarType dtype,
                              ResultShapes &results) {
  if (!c10::isFloatingType(dtype))
    return false;
  addResult(results, dtype, arguments.sizes(0));
  addResult(results, dtype, arguments.sizes(0));
  return true;
}

// Each result is the new value of an operand.
bool shape_rules::adam_update(const Arguments &arguments, ScalarType,
                              ResultShapes &results) {
  for (size_t state : {0, 2, 3})
    addResult(results, arguments.dtype(state), arguments.sizes(state));
  return true;
}

// hy and cy have the sizes of cx; the gates have the sizes of `input_gates`.
bool shape_rules::lstm_gates(const Arguments &arguments, ScalarType dtype,
                             ResultShapes &results) {
  for (size_t like : {2, 2, 0})
    addResult(results, dtype, arguments.sizes(like));
  return true;
}

bool shape_rules::lstm_gates_backward(const Arguments &arguments, ScalarType,
                                      ResultShapes &results) {
  for (size_t like : {2, 3})
    addResult(results, arguments.dtype(like), arguments.sizes(like));
  return true;
}

bool shape_rules::dropout(const Arguments &arguments, ScalarType dtype,
                          ResultShapes &results) {
  SizesRef self = arguments.sizes(0);
  addResult(results, dtype, self);
  // PyTorch 2.13 returns the input as the mask if it has no elements.
  addResult(results, numElements(self) ? ScalarType::Bool : dtype, self);
  return true;
}

namespace {

int64_t gluDim(const Arguments &arguments, size_t self, size_t dim) {
  TORCH_CHECK(arguments.rank(self) > 0,
              "glu does not support 0-dimensional tensors");
  int64_t wrapped = dimFromFront(arguments.integer(dim), arguments.rank(self));
  int64_t size = arguments.sizes(self)[wrapped];
  TORCH_CHECK(size % 2 == 0, "Halving dimension must be even, but dimension ",
              wrapped, " is size ", size);
  return wrapped;
}

} // namespace

bool shape_rules::glu(const Arguments &arguments, ScalarType dtype,
                      ResultShapes &results) {
  int64_t dim = gluDim(arguments, 0, 1);
  addResult(results, dtype, arguments.sizes(0)).sizes[dim] /= 2;
  return true;
}

bool shape_rules::glu_backward(const Arguments &arguments, ScalarType,
                               ResultShapes &results) {
  Sizes half(arguments.sizes(1));
  half[gluDim(arguments, 1, 2)] /= 2;
  checkSizes(arguments, 0, half);
  checkFloating(arguments, {0, 1});
  addResult(results, arguments.dtype(1), arguments.sizes(1));
  return true;
}
