//===- indexing.cpp - Masks as indices, one_hot ---------------------------===//
//
// The number of elements that `x[mask]` selects depends on the mask's value, so
// the mask is read on the host, and its positions become data of the graph.
// Masks usually come from a batch or an earlier step: reading these is no sync.
// The same is true for `nonzero`.
//
// `x[mask] = values` arrives as index_put with a boolean index. If the values
// don't depend on the number of selected elements, the op is a `where`, which
// doesn't read the mask.
//
// `one_hot` checks that the class values of its operand are in range. torch's
// composite reads these values for the check, but only on the CPU. Here the
// program checks them; they are read only if the number of classes isn't given.
//
//===----------------------------------------------------------------------===//

#include "execution/assumed_truths.h"
#include "fallback/eager_fallback.h"
#include "graph/live_tensors.h"
#include "graph/torch_dispatch.h"
#include "ir/op_counters.h"
#include "ir/tensor_arguments.h"
#include "ops/masked_write.h"
#include "ops/registration.h"
#include "shape/strides.h"
#include "tracing/argument_walk.h"
#include "tracing/boxed_kernels.h"
#include "tracing/checked_zero.h"
#include "tracing/trace.h"
#include "tracing/writing_call.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/ops/one_hot_native.h>

using namespace torch_ltc;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

bool isMask(const std::optional<at::Tensor> &index) {
  return index && index->defined() &&
         (index->scalar_type() == at::kBool ||
          index->scalar_type() == at::kByte);
}

/// Returns a CPU tensor with the value of `tensor`, which is computed first if
/// it is pending. The caller must not write to the result.
at::Tensor hostValueOf(const at::Tensor &tensor, const std::string &opName) {
  if (!tensor.device().is_lazy())
    return tensor;
  computeForCaller(tensor, opName);
  return tensorDataOf(tensor)->data()->sharedTensor();
}

/// Returns `indices` with the positions of the selected elements in place of
/// each mask, as eager's kernels do. The positions are data of the graph: only
/// a pending mask cuts it, and their number is the size of a parameter.
IValue withPositions(const at::Tensor &self, const IValue &indices,
                     const std::string &opName) {
  c10::List<std::optional<at::Tensor>> onHost;
  bool hasMask = false;
  for (std::optional<at::Tensor> &index : toOptionalTensors(indices)) {
    hasMask = hasMask || isMask(index);
    onHost.push_back(isMask(index) ? hostValueOf(*index, opName)
                                   : std::move(index));
  }
  if (!hasMask)
    return indices;
  c10::List<std::optional<at::Tensor>> result;
  for (at::Tensor &index : at::native::expandTensors(self, onHost))
    result.push_back(index.defined() ? std::optional(std::move(index))
                                     : std::nullopt);
  return result;
}

/// Traces a call of `record`, whose first two arguments are an operand and its
/// indices. Masks that don't fit run by fallback, which raises eager's error.
void traceWithPositions(const OperatorHandle &op, const OpRecord &record,
                        Stack *stack) {
  size_t numArguments = record.arguments.size();
  auto arguments = torch::jit::last(*stack, numArguments).vec();
  try {
    arguments[1] =
        withPositions(arguments[0].toTensor(), arguments[1], record.name);
  } catch (const c10::IndexError &) {
    return runFallback(op, *stack, "a mask of other sizes");
  }
  at::Tensor result = traceOp(record, arguments)[0];
  torch::jit::drop(*stack, numArguments);
  stack->emplace_back(std::move(result));
}

void index(const OperatorHandle &op, Stack *stack) {
  static const OpRecord &record = getOpRecord("aten::index.Tensor");
  if (auto reason = reasonForFallback(record.name, record.emitName))
    return runFallback(op, *stack, reason);
  traceWithPositions(op, record, stack);
}

/// Whether eager calls `masked_fill`, which rejects bytes, for a write of
/// `values` to elements that `indices` selects by bytes.
bool isFillByBytes(const IValue &indices, const at::Tensor &values) {
  at::ScalarType dtype = at::kBool;
  for (const std::optional<at::Tensor> &index : toOptionalTensors(indices)) {
    if (!index || !index->defined())
      continue;
    if (!isMask(index) || dtype == at::kByte)
      return false;
    dtype = index->scalar_type();
  }
  return dtype == at::kByte && values.numel() == 1;
}

void indexPut(const OperatorHandle &op, Stack *stack) {
  static const OpRecord &record = getOpRecord("aten::index_put");
  if (auto reason = reasonForFallback(record.name, record.emitName))
    return runFallback(op, *stack, reason);
  auto arguments = torch::jit::last(*stack, 4);
  const at::Tensor &self = arguments[0].toTensor();
  if (!arguments[3].toBool() &&
      isFillByBytes(arguments[1], arguments[2].toTensor()))
    return runFallback(op, *stack, "a mask of bytes");
  std::optional<MaskedWrite> write =
      maskedWrite(self, arguments[1], arguments[2].toTensor());
  const at::Tensor &number = arguments[2].toTensor();
  if (!write && number.device().is_cpu() &&
      number.scalar_type() != self.scalar_type())
    return runFallback(op, *stack, "a number of another dtype");
  if (!write || arguments[3].toBool()) // accumulate
    return traceWithPositions(op, record, stack);
  at::Tensor mask =
      traceOp("aten::view_copy", {write->mask, IValue(write->maskSizes)});
  at::Tensor values = arguments[2].toTensor();
  if (values.device().is_lazy())
    values = traceOp("aten::view_copy", {values, IValue(write->valueSizes)});
  at::Tensor result = traceOp("aten::where.self", {mask, values, self});
  torch::jit::drop(*stack, 4);
  stack->emplace_back(std::move(result));
}

/// Traces `masked_select` as an index op on the flattened operand.
void maskedSelect(const OperatorHandle &op, Stack *stack) {
  auto arguments = torch::jit::last(*stack, 2);
  at::Tensor self = arguments[0].toTensor();
  const at::Tensor &mask = arguments[1].toTensor();
  auto reason = reasonForFallback("aten::masked_select", "aten.masked_select");
  bool isChecked = mask.scalar_type() == at::kBool &&
                   mask.device() == self.device() &&
                   at::are_expandable(self.sizes(), mask.sizes());
  if (reason || !isChecked || !isSupportedDType(self.scalar_type()))
    return runFallback(op, *stack, reason ? reason : "other arguments");
  std::vector<int64_t> sizes = at::infer_size(self.sizes(), mask.sizes());
  at::Tensor positions = hostValueOf(mask, "aten::masked_select")
                             .expand(sizes)
                             .reshape(-1)
                             .nonzero()
                             .squeeze(1);
  if (self.sizes() != sizes)
    self = traceOp("aten::expand_copy", {self, IValue(sizes)});
  at::Tensor flat =
      traceOp("aten::view_copy", {self, IValue(std::vector{-1l})});
  c10::List<std::optional<at::Tensor>> indices({std::move(positions)});
  at::Tensor result = traceOp("aten::index.Tensor", {flat, indices});
  torch::jit::drop(*stack, 2);
  stack->emplace_back(std::move(result));
}

/// The positions of the elements that aren't zero, as data with the strides
/// that eager gives them.
at::Tensor nonzero(const at::Tensor &self) {
  countEagerOp("aten::nonzero");
  at::Tensor positions = hostValueOf(self, "aten::nonzero").nonzero();
  Strides strides(positions.strides());
  bool isPacked = hasPackedStrides(positions);
  at::Tensor result = makeTensor(HostData::takeOver(std::move(positions)));
  if (!isPacked)
    setGeometry(result, strides);
  return result;
}

const char *const kNegative = "Class values must be non-negative.";
const char *const kTooLarge = "Class values must be smaller than num_classes.";

at::Tensor oneHot(const at::Tensor &self, int64_t numClasses) {
  if (!isLazyWrapper(self) || hasTorchDispatch(self) ||
      self.scalar_type() != at::kLong || self.numel() == 0)
    return at::native::one_hot(self, numClasses);
  at::Tensor classes = self;
  if (numClasses == -1) {
    at::Tensor ends = at::stack({self.min(), self.max()}).cpu();
    TORCH_CHECK(ends[0].item<int64_t>() >= 0, kNegative);
    numClasses = ends[1].item<int64_t>() + 1;
  } else {
    TORCH_CHECK(numClasses > 0, kTooLarge);
    classes = classes + checkedZero(self.ge(0), kNegative);
    classes = classes + checkedZero(self.lt(numClasses), kTooLarge);
  }
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.push_back(numClasses);
  return at::zeros(sizes, self.options()).scatter(-1, classes.unsqueeze(-1), 1);
}

} // namespace

void torch_ltc::registerOneHot() { registerComposite<oneHot>("one_hot"); }

void torch_ltc::registerIndexingKernels(torch::Library &library) {
  library.impl("index.Tensor",
               torch::CppFunction::makeFromBoxedFunction<&index>());
  library.impl("index_put",
               torch::CppFunction::makeFromBoxedFunction<&indexPut>());
  library.impl("nonzero", TORCH_FN(nonzero));
  library.impl("masked_select",
               torch::CppFunction::makeFromBoxedFunction<&maskedSelect>());
}
