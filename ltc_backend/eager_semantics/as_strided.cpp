//===- as_strided.cpp - Views of memory by stride and offset --------------===//
//
// The strides and the offset of `as_strided` refer to the memory layout that a
// tensor reports, while the tensor's values are packed in row-major order
// (shape/strides.h). At key Functionalize, they refer to the storage that all
// views share, which covers all of the memory even if the base has become
// another view in place (for example, through `t_`). Below functionalization, a
// tensor is first permuted into memory order. Above autograd, `as_strided` of a
// view whose dtype isn't its base's becomes `as_strided` of the base.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "eager_semantics/replayed_views.h"
#include "events/op_error.h"
#include "graph/live_tensors.h"
#include "shape/strides.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"
#include "tracing/wrapped_value.h"

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <numeric>
#include <utility>

using namespace torch_ltc;
using c10::IValue;

namespace {

namespace functional = at::functionalization::impl;
using Dims = std::vector<int64_t>;

/// The dims of `self` from the outermost in memory to the innermost.
Dims memoryOrder(const at::Tensor &self) {
  Dims order(size_t(self.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return self.stride(a) > self.stride(b);
  });
  return order;
}

Dims inverse(const Dims &order) {
  Dims result(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    result[size_t(order[i])] = int64_t(i);
  return result;
}

/// Returns the offset of `self` in memory, or 0 if the requested view is empty.
/// Otherwise throws if that view needs memory outside of `self`, or if `self`
/// has gaps or repeated elements.
int64_t beginOf(const at::Tensor &self, int64_t offset, at::IntArrayRef size,
                at::IntArrayRef stride) {
  int64_t first = offset - self.storage_offset(), last = first;
  for (size_t i = 0; i < size.size(); ++i)
    last += std::max<int64_t>(size[i] - 1, 0) * stride[i];
  bool isEmpty = c10::multiply_integers(size) == 0;
  TORCH_CHECK(isEmpty || (self.is_non_overlapping_and_dense() && first >= 0 &&
                          last < self.numel()),
              "as_strided on a view that is detached from its base can't reach "
              "memory outside the view: call it on the base.",
              opSuffix("aten::as_strided"));
  return isEmpty ? 0 : self.storage_offset();
}

at::Tensor inMemoryOrder(const at::Tensor &self) {
  return self.is_contiguous()
             ? self
             : traceOp("aten::permute_copy", {self, IValue(memoryOrder(self))});
}

at::Tensor asStridedCopy(const at::Tensor &self, c10::SymIntArrayRef symSize,
                         c10::SymIntArrayRef symStride,
                         std::optional<c10::SymInt> symOffset) {
  auto size = C10_AS_INTARRAYREF_SLOW(symSize);
  auto stride = C10_AS_INTARRAYREF_SLOW(symStride);
  int64_t offset = symOffset ? symOffset->expect_int() : self.storage_offset();
  int64_t begin = isPacked(self) ? 0 : beginOf(self, offset, size, stride);
  at::Tensor result = traceOp("aten::as_strided_copy",
                              {inMemoryOrder(self), IValue(size),
                               IValue(stride), IValue(offset - begin)});
  setGeometry(result, stride, offset);
  return result;
}

/// The dims of a view from the outermost in memory to the innermost, if the
/// view fills a range of memory without gaps.
std::optional<Dims> orderWithoutGaps(at::IntArrayRef size,
                                     at::IntArrayRef stride) {
  Dims order(size.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return stride[size_t(a)] > stride[size_t(b)];
  });
  int64_t next = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    if (size[size_t(*dim)] != 1 && stride[size_t(*dim)] != next)
      return std::nullopt;
    next *= size[size_t(*dim)];
  }
  return next ? std::optional(order) : std::nullopt;
}

/// Writes `src` by a slice_scatter if the written view fills a range of
/// one-dimensional memory. A chain of slice_scatters becomes one kernel, while
/// each as_strided_scatter copies all of the memory. A bucket of
/// DistributedDataParallel has such a range for each parameter.
std::optional<at::Tensor> writeSlice(const at::Tensor &self,
                                     const at::Tensor &src,
                                     at::IntArrayRef size,
                                     at::IntArrayRef stride, int64_t begin) {
  if (self.dim() != 1 || !self.is_contiguous() || src.sizes() != size)
    return std::nullopt;
  std::optional<Dims> order = orderWithoutGaps(size, stride);
  int64_t end = begin + src.numel();
  if (!order || begin < 0 || end > self.numel())
    return std::nullopt;
  at::Tensor part = src;
  if (!std::is_sorted(order->begin(), order->end()))
    part = traceOp("aten::permute_copy", {part, IValue(*order)});
  part = traceOp("aten::_reshape_copy", {part, IValue(Dims{src.numel()})});
  return traceOp("aten::slice_scatter",
                 {self, part, IValue(int64_t(0)), IValue(begin), IValue(end),
                  IValue(int64_t(1))});
}

at::Tensor asStridedScatter(const at::Tensor &self, const at::Tensor &src,
                            c10::SymIntArrayRef symSize,
                            c10::SymIntArrayRef symStride,
                            std::optional<c10::SymInt> symOffset) {
  if (hasRepeatedElements(self)) // as in eager, on a copy
    return asStridedScatter(withValueOf(self), src, symSize, symStride,
                            std::move(symOffset));
  auto size = C10_AS_INTARRAYREF_SLOW(symSize);
  auto stride = C10_AS_INTARRAYREF_SLOW(symStride);
  TORCH_CHECK(
      std::none_of(stride.begin(), stride.end(),
                   [](int64_t s) { return s < 0; }),
      "as_strided: Negative strides are not supported at the moment, got "
      "strides: ",
      stride, opSuffix("aten::as_strided_scatter"));
  int64_t offset = symOffset ? symOffset->expect_int() : self.storage_offset();
  int64_t begin = isPacked(self) ? 0 : beginOf(self, offset, size, stride);
  std::optional<at::Tensor> slice =
      writeSlice(self, src, size, stride, offset - begin);
  at::Tensor result = slice ? *slice
                            : traceOp("aten::as_strided_scatter",
                                      {inMemoryOrder(self), src, IValue(size),
                                       IValue(stride), IValue(offset - begin)});
  if (!self.is_contiguous())
    result = traceOp("aten::permute_copy",
                     {result, IValue(inverse(memoryOrder(self)))});
  setGeometry(result, self.strides(), self.storage_offset());
  return result;
}

/// Calls torch's own kernel at key Autograd, which is the same for all devices.
/// For this device, `asStrided` hides that kernel.
at::Tensor differentiated(const at::Tensor &self, c10::SymIntArrayRef size,
                          c10::SymIntArrayRef stride,
                          std::optional<c10::SymInt> offset) {
  static const c10::OperatorHandle op = findOp({"aten::as_strided", ""});
  torch::jit::Stack stack{self, IValue(size), IValue(stride), IValue(offset)};
  op.callBoxedForDispatchKey(c10::DispatchKey::Autograd, stack);
  return std::move(stack.back()).toTensor();
}

/// A view of `whole` with elements of dtype `to`; undefined if it isn't a whole
/// number of such elements.
at::Tensor reinterpreted(const at::Tensor &whole, at::ScalarType to) {
  at::ScalarType from = whole.scalar_type();
  if (from == to)
    return whole;
  if (whole.is_complex() && c10::toRealValueType(from) == to)
    return at::view_as_real(whole);
  int64_t oldSize = int64_t(c10::elementSize(from));
  int64_t newSize = int64_t(c10::elementSize(to));
  bool isWhole = oldSize == newSize ||
                 (whole.dim() && whole.size(-1) * oldSize % newSize == 0);
  return isWhole ? whole.view(to) : at::Tensor();
}

/// The kernel of `as_strided` at key AutogradLazy. Gradients go through `self`,
/// even if it is a view: it may be a leaf, or may have been created without
/// recording gradients. If `self` and its base have different dtypes, gradients
/// go through the base if it can be viewed in the dtype of `self`.
at::Tensor asStrided(const at::Tensor &self, c10::SymIntArrayRef size,
                     c10::SymIntArrayRef stride,
                     std::optional<c10::SymInt> offset) {
  if (!offset)
    offset = self.sym_storage_offset();
  at::Tensor memory; // of a real part or a view(dtype)
  if (self.is_view() && self._base().scalar_type() != self.scalar_type())
    memory = reinterpreted(at::Tensor(self._base()), self.scalar_type());
  if (!memory.defined()) {
    at::Tensor view = differentiated(self, size, stride, offset);
    // Once the memory is written, gradients go through the base instead,
    // because they must also reach elements outside of `self`.
    if (isReplayedView(self) && !self.is_conj() && !self.is_neg() &&
        self._base().scalar_type() == self.scalar_type())
      replayLike(
          view, differentiated(at::Tensor(self._base()), size, stride, offset));
    return view;
  }
  at::Tensor view = differentiated(memory, size, stride, std::move(offset));
  if (view.is_conj() != self.is_conj())
    view = at::_conj(view);
  return view.is_neg() == self.is_neg() ? view : at::_neg_view(view);
}

/// Whether `tensor` is a view, according to its view records.
bool isView(const at::Tensor &tensor) {
  return tensor.device().is_lazy() && functional::isFunctionalTensor(tensor) &&
         !functional::isBaseTensor(tensor);
}

/// Whether `tensor` is a view that has the dtype of its memory.
bool isViewOfSameDType(const at::Tensor &tensor) {
  return isView(tensor) &&
         functionalMemory(tensor).base().scalar_type() == tensor.scalar_type();
}

/// Allows writes to `view`, the result of `as_strided` on a view of whole
/// memory that only reinterprets the elements. torch (2.13) rejects such writes
/// to every `as_strided` of a view, whose strides might mean other memory.
void allowWrites(const at::Tensor &view) {
  const auto &records =
      functional::unsafeGetFunctionalWrapper(view)->view_metas();
  if (records.size() > 1)
    records.back()->is_as_strided = false;
}

/// The kernel of `as_strided` at key Functionalize. The result is a view of all
/// of the memory that the tensor shares.
class AsStridedOfMemory : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    IValue &self = torch::jit::peek(*stack, 0, kNumArguments);
    const at::Tensor view = self.toTensor();
    at::Tensor memory;
    if (isView(view))
      memory = reinterpreted(wholeMemory(view), view.scalar_type());
    if (!memory.defined())
      return previous.callBoxed(op, keys, stack);
    fillOffset(view, *stack);
    self = std::move(memory);
    previous.callBoxed(op, keys, stack);
    allowWrites(stack->back().toTensor());
    if (view.is_conj()) // the result lacks the bits of `view`
      stack->back() = at::_conj(stack->back().toTensor());
    if (view.is_neg())
      stack->back() = at::_neg_view(stack->back().toTensor());
  }

protected:
  static constexpr size_t kNumArguments = 4, kOffset = 3;

  static void fillOffset(const at::Tensor &view, torch::jit::Stack &stack) {
    IValue &offset = torch::jit::peek(stack, kOffset, kNumArguments);
    if (offset.isNone())
      offset = view.sym_storage_offset();
  }
};

/// The kernel of `as_strided_`, which replaces the tensor's view records.
struct AsStridedOfMemoryInPlace final : AsStridedOfMemory {
  using AsStridedOfMemory::AsStridedOfMemory;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    const at::Tensor view =
        torch::jit::peek(*stack, 0, kNumArguments).toTensor();
    if (!isViewOfSameDType(view))
      return previous.callBoxed(op, keys, stack);
    fillOffset(view, *stack);
    at::Tensor shown; // a view whose records include the bits
    if (view.is_conj() || view.is_neg())
      shown = stridedLike(*stack);
    ViewRecords before = replaceViewRecords(view, {});
    try {
      previous.callBoxed(op, keys, stack);
      if (shown.defined())
        replaceViewRecords(
            view, functional::unsafeGetFunctionalWrapper(shown)->view_metas());
    } catch (...) {
      replaceViewRecords(view, std::move(before));
      throw;
    }
  }

private:
  static at::Tensor stridedLike(const torch::jit::Stack &stack) {
    auto arguments = torch::jit::last(stack, kNumArguments);
    return at::as_strided_symint(
        arguments[0].toTensor(), arguments[1].toSymIntVector(),
        arguments[2].toSymIntVector(), arguments[kOffset].toSymInt());
  }
};

/// The kernel of `as_strided_scatter` at key Functionalize. For a view, the
/// positions refer to all of the memory that the view shares, so all of it is
/// copied, as in eager, unless the view has repeated elements.
class ScatterIntoMemory final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    auto arguments = torch::jit::last(*stack, kNumArguments);
    const at::Tensor self = arguments[0].toTensor(),
                     src = arguments[1].toTensor();
    std::vector<int64_t> size = arguments[2].toIntVector();
    at::Tensor memory;
    if (isView(self) && !hasRepeatedElements(self) && !self.is_conj() &&
        !self.is_neg() && src.sizes() == at::IntArrayRef(size))
      memory = reinterpreted(wholeMemory(self), self.scalar_type());
    if (!memory.defined())
      return previous.callBoxed(op, keys, stack);
    std::optional<int64_t> offset = arguments[4].toOptional<int64_t>();
    at::Tensor copy = memory.clone();
    at::as_strided(copy, size, arguments[3].toIntVector(),
                   offset.value_or(self.storage_offset()))
        .copy_(src);
    torch::jit::drop(*stack, kNumArguments);
    stack->emplace_back(at::as_strided(copy, self.sizes(), self.strides(),
                                       self.storage_offset()));
  }

private:
  static constexpr size_t kNumArguments = 5;
};

/// Raises the error of eager's kernel, which functionalization doesn't call.
class ScatterOfContiguous final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    const at::Tensor &self = torch::jit::peek(*stack, 0, 5).toTensor();
    TORCH_INTERNAL_ASSERT(
        !self.requires_grad() || self.is_contiguous(),
        "as_strided_scatter is currently only supported for contiguous inputs");
    previous.callBoxed(op, keys, stack);
  }
};

} // namespace

void torch_ltc::registerAsStridedOnStorage() {
  SilentRegistration silence;
  constexpr auto key = c10::DispatchKey::Functionalize;
  registerAround<ScatterIntoMemory>(findOp({"aten::as_strided_scatter", ""}),
                                    key);
  registerAround<ScatterOfContiguous>(findOp({"aten::as_strided_scatter", ""}),
                                      c10::DispatchKey::AutogradLazy);
  registerAround<AsStridedOfMemory>(findOp({"aten::as_strided", ""}), key);
  registerAround<AsStridedOfMemoryInPlace>(findOp({"aten::as_strided_", ""}),
                                           key);
}

void torch_ltc::registerAsStridedAutograd(torch::Library &library) {
  library.impl("as_strided", TORCH_FN(asStrided));
}

void torch_ltc::registerAsStridedKernels(torch::Library &library) {
  library.impl("as_strided_copy", TORCH_FN(asStridedCopy));
  library.impl("as_strided", TORCH_FN(asStridedCopy));
  library.impl("as_strided_scatter", TORCH_FN(asStridedScatter));
}
