//===- masked_write.cpp - Writes to the elements of a mask ----------------===//

#include "ops/masked_write.h"

#include "graph/live_tensors.h"
#include "ir/tensor_arguments.h"
#include "ops/registration.h"
#include "tracing/boxed_kernels.h"

#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>

#include <algorithm>

using namespace torch_ltc;

std::optional<MaskedWrite> torch_ltc::maskedWrite(const at::Tensor &self,
                                                  const c10::IValue &indices,
                                                  const at::Tensor &values) {
  auto list = toOptionalTensors(indices);
  auto isGiven = [](const std::optional<at::Tensor> &index) {
    return index && index->defined();
  };
  auto first = std::ranges::find_if(list, isGiven);
  if (first == list.end() || std::any_of(first + 1, list.end(), isGiven))
    return std::nullopt;
  const at::Tensor &mask = **first;
  const int64_t begin = first - list.begin(), end = begin + mask.dim();
  if (mask.scalar_type() != at::kBool || !mask.device().is_lazy() ||
      values.scalar_type() != self.scalar_type() || mask.dim() == 0 ||
      end > self.dim() ||
      mask.sizes() != self.sizes().slice(size_t(begin), size_t(mask.dim())))
    return std::nullopt;
  // The selected elements have the sizes of `self` with one dim in place of
  // the mask's; `values` is aligned with their last dim.
  const int64_t rest = self.dim() - end;
  MaskedWrite write{mask, mask.sizes().vec(), {}};
  write.maskSizes.resize(size_t(mask.dim() + rest), 1);
  if (values.numel() == 1) // may have more dims than the selected elements
    return write;
  if (!values.device().is_lazy() || values.dim() > begin + 1 + rest)
    return std::nullopt;
  for (int64_t dim = 0; dim < values.dim(); ++dim) {
    const int64_t size = values.size(dim), fromEnd = values.dim() - dim;
    if (fromEnd == rest + 1) {
      if (size != 1)
        return std::nullopt;
      write.valueSizes.insert(write.valueSizes.end(), size_t(mask.dim()), 1);
      continue;
    }
    const int64_t target =
        fromEnd <= rest ? self.dim() - fromEnd : begin - (fromEnd - rest - 1);
    if (size != 1 && size != self.size(target))
      return std::nullopt;
    write.valueSizes.push_back(size);
  }
  return write;
}

namespace {

/// Wraps `index_put` and `index_put_`: their gradient of the values selects
/// elements by the mask, so it reads the mask. The gradient of `where` doesn't,
/// which avoids a sync if the mask is pending.
class DifferentiableWrite final : public KernelAround {
public:
  explicit DifferentiableWrite(bool isInPlace, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), isInPlace(isInPlace) {}

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    auto arguments = torch::jit::last(*stack, 4);
    at::Tensor self = arguments[0].toTensor();
    at::Tensor values = arguments[2].toTensor();
    bool accumulates = arguments[3].toBool();
    if (accumulates || !values.requires_grad() ||
        !c10::GradMode::is_enabled() ||
        at::has_internal_overlap(self) != at::MemOverlap::No)
      return previous.callBoxed(op, keys, stack);
    auto write = maskedWrite(self, arguments[1], values);
    TensorDataPtr mask = write ? tensorDataOf(write->mask) : nullptr;
    if (!mask || !mask->isPending())
      return previous.callBoxed(op, keys, stack);
    at::Tensor result = at::where(write->mask.view(write->maskSizes),
                                  values.reshape(write->valueSizes), self);
    torch::jit::drop(*stack, 4);
    stack->emplace_back(isInPlace ? self.copy_(result) : result);
  }

private:
  bool isInPlace;
};

} // namespace

void torch_ltc::registerMaskedWrites() {
  constexpr auto key = c10::DispatchKey::AutogradLazy;
  for (bool isInPlace : {false, true})
    registerAround<DifferentiableWrite>(
        findOp({isInPlace ? "aten::index_put_" : "aten::index_put", ""}), key,
        isInPlace);
}
