//===- pooling_backward.cpp - Gradients of max pooling --------------------===//
//
// A maximum's gradient goes to the position that the pooling found; for each
// element, the compiler sums the gradients of those windows whose maximum it
// is. Indices that don't come from the pooling may lie outside their windows.
// Eager adds to those positions, too, so the op is then traced as scatter_add.
//
//===----------------------------------------------------------------------===//

#include "fallback/eager_fallback.h"
#include "graph/live_tensors.h"
#include "ops/registration.h"
#include "shape/strides.h"
#include "tracing/argument_walk.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"

using namespace torch_ltc;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

using ForwardArguments = std::vector<IValue>;

/// Returns the pooling's arguments, given those of the gradient: (grad_output,
/// self, ..., indices).
ForwardArguments ofPooling(c10::ArrayRef<IValue> arguments) {
  return ForwardArguments(arguments.begin() + 1, arguments.end() - 1);
}

/// Returns the pooling's arguments, self and the result's sizes, given those of
/// the gradient: (grad_output, self, indices).
ForwardArguments ofAdaptivePooling(c10::ArrayRef<IValue> arguments) {
  return {arguments[1], IValue(arguments[0].toTensor().sizes().slice(
                            size_t(arguments[0].toTensor().dim() - 2)))};
}

struct PoolingGradient {
  const char *backward, *forward;
  ForwardArguments (*forwardArguments)(c10::ArrayRef<IValue>);
  size_t rank; // of a window
};

const PoolingGradient poolingGradients[] = {
    {"max_pool2d_with_indices_backward", "aten::max_pool2d_with_indices",
     &ofPooling, 2},
    {"adaptive_max_pool2d_backward", "aten::adaptive_max_pool2d",
     &ofAdaptivePooling, 2},
};

class PoolingBackward final : public c10::OperatorKernel {
public:
  explicit PoolingBackward(const PoolingGradient &row)
      : row(row), backward(getOpRecord("aten::" + std::string(row.backward))),
        forward(getOpRecord(row.forward)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
    if (auto reason = reasonForFallback(backward.name, backward.emitName))
      return runFallback(op, *stack, reason);
    auto arguments = torch::jit::last(*stack, backward.arguments.size());
    at::Tensor result = traceOp(backward, arguments)[0]; // checks the sizes
    if (!hasOwnIndices(arguments))
      result = scattered(arguments);
    torch::jit::drop(*stack, arguments.size());
    stack->emplace_back(std::move(result));
  }

private:
  /// Whether the indices are those that the same pooling returned in this
  /// trace, or there is nothing to add.
  bool hasOwnIndices(c10::ArrayRef<IValue> arguments) const {
    const at::Tensor &self = arguments[1].toTensor();
    const at::Tensor &indices = arguments.back().toTensor();
    if (!self.numel() || !indices.numel() || !indices.device().is_lazy() ||
        indices.sizes() != arguments[0].toTensor().sizes())
      return true;
    torch::lazy::Value value = tensorDataOf(indices)->value();
    const GraphNode *node = asGraphNode(value.node.get());
    if (node->isData() || value.index != 1)
      return false;
    const auto &op = static_cast<const OpNode &>(*node);
    if (&op.record() != &forward ||
        op.operand(0).shape().sizes() != self.sizes())
      return false;
    ArgumentWalk walk(forward, row.forwardArguments(arguments));
    return walk.fallbackReason().empty() &&
           c10::ArrayRef<Word>(op.attributes()->words) ==
               c10::ArrayRef<Word>(walk.attributes.words);
  }

  at::Tensor scattered(c10::ArrayRef<IValue> arguments) const {
    const at::Tensor &grad = arguments[0].toTensor();
    const at::Tensor &self = arguments[1].toTensor();
    auto flat = [&](const at::Tensor &tensor) {
      std::vector<int64_t> sizes = planes(tensor.sizes());
      return traceOp("aten::view_copy", {tensor, IValue(sizes)});
    };
    at::Tensor zeros =
        traceOp("aten::zeros", {IValue(planes(self.sizes())),
                                IValue(int64_t(grad.scalar_type()))});
    at::Tensor sums = traceOp(
        "aten::scatter_add",
        {zeros, IValue(1), flat(arguments.back().toTensor()), flat(grad)});
    at::Tensor result =
        traceOp("aten::view_copy", {sums, IValue(self.sizes())});
    setGeometry(result,
                packedStrides(self.sizes(), self.suggest_memory_format()));
    return result;
  }

  /// Returns the number of planes and the number of elements of a plane.
  std::vector<int64_t> planes(at::IntArrayRef sizes) const {
    size_t lead = sizes.size() - row.rank;
    return {c10::multiply_integers(sizes.slice(0, lead)),
            c10::multiply_integers(sizes.slice(lead))};
  }

  const PoolingGradient &row;
  const OpRecord &backward, &forward;
};

} // namespace

void torch_ltc::registerPoolingBackward(torch::Library &library) {
  for (const PoolingGradient &row : poolingGradients)
    library.impl(row.backward, torch::CppFunction::makeFromBoxedFunctor(
                                   std::make_unique<PoolingBackward>(row)));
}
