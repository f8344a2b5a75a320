//===- gradient_sizes.h - Sizes of gradients of windows ---------*- C++ -*-===//
//
// If the gradients of a step are a program of their own, the sizes of a window
// op's input and of its result are sizes of parameters, which no shape rule
// relates:
//
//   avg_pool2d_backward(grad f32[2, 4, 15, 19], x f32[2, 4, 32, 40], stride 2)
//
// For the ops that move windows over an input or pad it, the rule of the
// forward op gives the gradient's sizes: 15 = (32 + 2 * padding - kernel) /
// stride + 1.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GENERAL_GRADIENT_SIZES_H
#define TORCH_LTC_GENERAL_GRADIENT_SIZES_H

#include "general/number_slots.h"

namespace torch_ltc {

/// A size of a gradient: floor(sum / divisor) + offset. The slots are indices
/// in the graph's list of slots.
struct GradientSize {
  struct Summand {
    int64_t factor = 1;
    c10::SmallVector<uint32_t, 2> slots; ///< whose numbers are multiplied
  };
  Column values; ///< of the gradient's size
  /// The value, and its dimension, that bounds the gradient's size; none if
  /// the gradient is larger.
  std::optional<std::pair<ResultRef, uint32_t>> whole;
  c10::SmallVector<Summand, 6> sum;
  int64_t constant = 0; ///< also a summand
  int64_t divisor = 1;
  std::optional<uint32_t> divisorSlot; ///< replaces `divisor`
  int64_t offset = 0;

  /// Whether the size differs between traces.
  bool varies() const;
  /// The slots of all numbers.
  c10::SmallVector<uint32_t, 8> slots() const;
};

/// Returns the sizes of gradients that follow, in all traces, from the other
/// numbers of the op; those of the model's first layers come first.
std::vector<GradientSize> findGradientSizes(const GraphSnapshot &base,
                                            const TraceColumns &columns,
                                            c10::ArrayRef<NumberSlot> slots);

/// Returns the expression of a gradient's size after its slots have values.
/// Adds its parts to `derived`.
SizeExpression expressionOf(const GradientSize &size,
                            c10::ArrayRef<NumberSlot> slots,
                            std::vector<SizeExpression> &derived);

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_GRADIENT_SIZES_H
