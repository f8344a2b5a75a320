//===- loss.cpp - Sizes of losses -----------------------------------------===//

#include "shape/rules/rules.h"

#include <ATen/core/Reduction.h>

using namespace torch_ltc;
using at::ScalarType;

namespace {

bool reduces(const Arguments &arguments) {
  int64_t reduction = arguments.integer(*arguments.find("reduction"));
  TORCH_CHECK(reduction >= 0 && reduction < at::Reduction::END,
              "unknown reduction ", reduction);
  return reduction != at::Reduction::None;
}

/// Checks the upstream gradient, argument 0, of a loss that has the sizes
/// `unreduced` unless it is reduced to a scalar.
void checkGradient(const Arguments &arguments, SizesRef unreduced) {
  checkSizes(arguments, 0, reduces(arguments) ? SizesRef() : unreduced);
  checkFloating(arguments, {0, 1});
}

void checkTarget(ScalarType dtype) {
  TORCH_CHECK(dtype == ScalarType::Long || dtype == ScalarType::Byte,
              "expected target dtype to be Long or Byte, but got ",
              c10::toString(dtype));
}

void checkWeight(const Arguments &arguments, size_t weight, int64_t classes) {
  TORCH_CHECK(!arguments.has(weight) || (arguments.rank(weight) == 1 &&
                                         arguments.sizes(weight)[0] == classes),
              "weight tensor should be defined either for all ", classes,
              " classes or no classes but got weight tensor of shape: ",
              arguments.has(weight) ? arguments.sizes(weight) : SizesRef());
  checkFloating(arguments, {weight - 2, weight});
}

/// Checks nll_loss's operands: input [N, C] or [C] with target [N] or [].
void checkNll(const Arguments &arguments, size_t self) {
  SizesRef input = arguments.sizes(self), target = arguments.sizes(self + 1);
  TORCH_CHECK(input.size() == 1 || input.size() == 2,
              "input tensor should be 1D or 2D");
  TORCH_CHECK(target.size() <= 1,
              "0D or 1D target tensor expected, multi-target not supported");
  int64_t count = target.empty() ? 1 : target[0];
  TORCH_CHECK((input.size() == 1 && count == 1) || input[0] == count,
              "size mismatch (got input: ", input, ", target: ", target, ")");
  // torch reads dim 0 of the target if the input has a batch dim.
  TORCH_CHECK_INDEX(input.size() == 1 || !target.empty(),
                    "Dimension specified as 0 but tensor has no dimensions");
  checkTarget(arguments.dtype(self + 1));
  checkWeight(arguments, self + 2, input.back());
}

/// Checks nll_loss2d's operands: input [N, C, H, W] with target [N, H, W].
void checkNll2d(const Arguments &arguments, size_t self) {
  SizesRef input = arguments.sizes(self), target = arguments.sizes(self + 1);
  TORCH_CHECK(target.size() == 3,
              "only batches of spatial targets supported (3D tensors) but got "
              "targets of dimension: ",
              target.size());
  TORCH_CHECK(input.size() == 4,
              "only batches of spatial inputs supported (4D tensors), but got "
              "input of dimension: ",
              input.size());
  TORCH_CHECK(input[0] == target[0] && input[2] == target[1] &&
                  input[3] == target[2],
              "size mismatch (got input: ", input, ", target: ", target, ")");
  checkTarget(arguments.dtype(self + 1));
  checkWeight(arguments, self + 2, input[1]);
}

bool addLoss(const Arguments &arguments, ScalarType dtype, SizesRef unreduced,
             ResultShapes &results) {
  addResult(results, dtype, reduces(arguments) ? SizesRef() : unreduced);
  return true;
}

} // namespace

// The rule of elementwise losses, which broadcast their operands.
bool shape_rules::loss(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  TORCH_CHECK(c10::isFloatingType(arguments.dtype(0)) &&
                  c10::isFloatingType(arguments.dtype(1)),
              arguments.opName(), " of integers");
  broadcast(arguments, dtype, results);
  if (reduces(arguments))
    results[0].sizes.clear();
  return true;
}

// PyTorch's kernel computes in place in a tensor of the input's size, so the
// target must be broadcastable to that size.
bool shape_rules::soft_margin_loss(const Arguments &arguments, ScalarType dtype,
                                   ResultShapes &results) {
  Sizes sizes(arguments.sizes(0));
  broadcastInto(sizes, arguments.sizes(1));
  TORCH_CHECK(SizesRef(sizes) == arguments.sizes(0), "output with shape ",
              arguments.sizes(0), " doesn't match the broadcast shape ", sizes);
  checkSameDType(arguments, {0, 1});
  return loss(arguments, dtype, results);
}

// Gradients of elementwise losses have the broadcast sizes of the upstream
// gradient, the input and the target.
bool shape_rules::loss_backward(const Arguments &arguments, ScalarType dtype,
                                ResultShapes &results) {
  reduces(arguments);
  checkFloating(arguments, {0, 1, 2});
  return broadcast(arguments, dtype, results);
}

bool shape_rules::binary_cross_entropy_backward(const Arguments &arguments,
                                                ScalarType dtype,
                                                ResultShapes &results) {
  checkSizes(arguments, 2, arguments.sizes(1));
  return loss_backward(arguments, dtype, results);
}

bool shape_rules::cross_entropy(const Arguments &arguments, ScalarType dtype,
                                ResultShapes &results) {
  SizesRef self = arguments.sizes(0), target = arguments.sizes(1);
  TORCH_CHECK(self == target, "Using a target size (", target,
              ") that is different to the input size (", self,
              ") is not supported. Please ensure they have the same size.");
  checkFloating(arguments, {0, 1, 2});
  Sizes unreduced(self);
  if (arguments.has(2)) {
    broadcastInto(unreduced, arguments.sizes(2));
    TORCH_CHECK(SizesRef(unreduced) == self, "weight of size ",
                arguments.sizes(2), " for input of size ", self);
  }
  return addLoss(arguments, dtype, unreduced, results);
}

bool shape_rules::nll_loss(const Arguments &arguments, ScalarType dtype,
                           ResultShapes &results) {
  checkNll(arguments, 0);
  SizesRef input = arguments.sizes(0);
  addLoss(arguments, dtype, input.size() == 2 ? input.slice(0, 1) : SizesRef(),
          results);
  addResult(results, dtype, {});
  return true;
}

bool shape_rules::nll_loss_backward(const Arguments &arguments,
                                    ScalarType dtype, ResultShapes &results) {
  checkNll(arguments, 1);
  SizesRef input = arguments.sizes(1);
  checkGradient(arguments, input.size() == 2 ? input.slice(0, 1) : SizesRef());
  checkSizes(arguments, 6, {});
  addResult(results, dtype, arguments.sizes(1));
  return true;
}

bool shape_rules::nll_loss2d(const Arguments &arguments, ScalarType dtype,
                             ResultShapes &results) {
  checkNll2d(arguments, 0);
  addLoss(arguments, dtype, arguments.sizes(1), results);
  addResult(results, dtype, {});
  return true;
}

bool shape_rules::nll_loss2d_backward(const Arguments &arguments,
                                      ScalarType dtype, ResultShapes &results) {
  checkNll2d(arguments, 1);
  checkGradient(arguments, arguments.sizes(2));
  checkSizes(arguments, 6, {});
  addResult(results, dtype, arguments.sizes(1));
  return true;
}

bool shape_rules::ctc_loss_backward(const Arguments &arguments,
                                    ScalarType dtype, ResultShapes &results) {
  addResult(results, dtype, arguments.sizes(1)); // log_probs
  return true;
}
