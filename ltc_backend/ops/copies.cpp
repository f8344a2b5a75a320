//===- copies.cpp - Copies between and within devices ---------------------===//
//
// `clone`, `detach` and similar ops share the traced value, because values are
// immutable.
//
//===----------------------------------------------------------------------===//

#include "events/op_error.h"
#include "execution/assumed_truths.h"
#include "execution/recording.h"
#include "graph/inference_tensors.h"
#include "graph/live_tensors.h"
#include "memory/lazy_device.h"
#include "ops/registration.h"
#include "shape/strides.h"
#include "tracing/argument_walk.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"
#include "tracing/wrapped_value.h"
#include "tracing/writing_call.h"

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>
#include <ATen/ops/detach_ops.h>

#include <algorithm>

using namespace torch_ltc;
using c10::IValue;

namespace {

at::Tensor sameValue(const at::Tensor &self) {
  at::Tensor result = withValueOf(self);
  if (!isPacked(self))
    setGeometry(result, self.strides(), self.storage_offset());
  return result;
}

/// The result is a view's value, unlike that of `sameValue`.
at::Tensor alias(const at::Tensor &self) {
  ModeOfResults mode(self);
  return sameValue(self);
}

/// Fake tensors of this device (Python) are tensors of device `meta` that also
/// have our dispatch key; torch detaches them.
at::Tensor detach(const at::Tensor &self) {
  return self.is_meta() ? at::_ops::detach::redispatch(
                              c10::DispatchKeySet(c10::DispatchKey::Meta), self)
                        : ::alias(self);
}

/// Gives `copy` the strides of a copy of `source`.
at::Tensor asCopyOf(at::Tensor copy, const at::Tensor &source,
                    std::optional<at::MemoryFormat> format) {
  if (!hasPackedStrides(source) ||
      (format && *format != at::MemoryFormat::Preserve))
    setGeometry(copy, copyStrides(source, format));
  return copy;
}

/// Reads `source`, a lazy tensor, into a CPU tensor with the strides of a copy.
at::Tensor readCopy(const at::Tensor &source, const std::string &opName,
                    std::optional<at::MemoryFormat> format) {
  computeForCaller(source, opName);
  HostDataPtr data = tensorDataOf(source)->data();
  Strides strides = copyStrides(source, format);
  if (strides == packedStrides(source.sizes()))
    return data->copyToTensor();
  return data->copyToTensor(strides);
}

/// Wraps a tensor that torch has created from Python numbers, outside
/// functionalization, and passes to `lift_fresh` at the end. The op's composite
/// kernel adds no functional wrapper, and writing a wrapped tensor into such a
/// tensor fails an internal assert (torch 2.13).
at::Tensor lift(const at::Tensor &self) { return wrapIfOutside(self); }

/// Copies `converted` to the device. `source`: the user's CPU tensor that was
/// cast or expanded to `converted`.
HostDataPtr upload(const at::Tensor &source, const at::Tensor &converted) {
  HostDataPtr data = HostData::copyOf(converted);
  Recording *recording = Recording::current();
  if (recording && source.sizes() == converted.sizes() &&
      source.scalar_type() == converted.scalar_type())
    recording->noteUpload(data, source);
  return data;
}

at::Tensor readToCpu(const at::Tensor &self, const std::string &opName) {
  computeForCaller(self, opName);
  return tensorDataOf(self)->data()->copyToTensor();
}

at::Tensor castTo(const at::Tensor &self, at::ScalarType dtype) {
  if (self.scalar_type() == dtype)
    return withValueOf(self);
  return traceOp("aten::_to_copy", {self, IValue(int64_t(dtype))});
}

at::Tensor inGeometryOf(const at::Tensor &self, at::Tensor result) {
  if (!isPacked(self) || !isPacked(result))
    setGeometry(result, self.strides(), self.storage_offset());
  return result;
}

/// Returns `src` as a value with the sizes, dtype and strides of `self`.
at::Tensor copyKernel(const at::Tensor &self, const at::Tensor &src, bool) {
  if (!src.device().is_lazy()) {
    at::Tensor converted = src.scalar_type() == self.scalar_type()
                               ? src
                               : src.to(self.scalar_type());
    return inGeometryOf(
        self, makeTensor(upload(src, converted.expand(self.sizes()))));
  }
  at::Tensor result = castTo(src, self.scalar_type());
  if (result.sizes() != self.sizes())
    result = traceOp("aten::expand_copy", {result, IValue(self.sizes())});
  return inGeometryOf(self, std::move(result));
}

/// Writes `src` to `self`. Is only called without functionalization, so the
/// write doesn't have to reach views.
at::Tensor &copyInPlace(at::Tensor &self, const at::Tensor &src, bool) {
  if (!self.device().is_lazy())
    return self.copy_(readToCpu(src, "aten::copy_"));
  tensorDataOf(self)->setValue(
      tensorDataOf(copyKernel(self, src, false))->value());
  return self;
}

at::Tensor copyFrom(const at::Tensor &self, const at::Tensor &dst, bool) {
  at::Tensor target = dst;
  return copyInPlace(target, self, false);
}

at::Tensor copyFromAndResize(const at::Tensor &self, const at::Tensor &dst) {
  if (!dst.device().is_lazy()) {
    at::Tensor target = dst;
    target.resize_(self.sizes());
    return target.copy_(readToCpu(self, "aten::_copy_from_and_resize"));
  }
  tensorDataOf(dst)->setData(HostData::copyOf(self));
  resetSizes(dst, self.sizes());
  return dst;
}

at::Tensor toCopy(const at::Tensor &self, std::optional<at::ScalarType> dtype,
                  std::optional<at::Layout> layout,
                  std::optional<at::Device> device,
                  std::optional<bool> pinMemory, bool nonBlocking,
                  std::optional<at::MemoryFormat> memoryFormat) {
  at::ScalarType type = dtype.value_or(self.scalar_type());
  checkLazyDevice(device.value_or(at::kLazy));
  if (device && !device->is_lazy()) {
    at::Tensor cpu = readCopy(self, "aten::_to_copy", memoryFormat);
    return cpu.to(at::TensorOptions().dtype(type).device(*device), nonBlocking,
                  /*copy=*/false, memoryFormat);
  }
  if (!self.device().is_lazy()) {
    NewMemory newMemory;
    return wrapIfOutside(
        asCopyOf(makeTensor(upload(self, self.to(type))), self, memoryFormat));
  }
  return asCopyOf(castTo(self, type), self, memoryFormat);
}

at::Tensor cloneKernel(const at::Tensor &self,
                       std::optional<at::MemoryFormat> format) {
  return asCopyOf(withValueOf(self), self, format);
}

at::Tensor reshapeAliasCopy(const at::Tensor &self, c10::SymIntArrayRef size,
                            c10::SymIntArrayRef) {
  return traceOp("aten::view_copy",
                 {self, IValue(C10_AS_INTARRAYREF_SLOW(size))});
}

at::Tensor &fillScalar(at::Tensor &self, const at::Scalar &value) {
  at::Tensor filled = traceOp("aten::fill.Scalar", {self, IValue(value)});
  tensorDataOf(self)->setValue(tensorDataOf(filled)->value());
  return self;
}

at::Tensor &zeroInPlace(at::Tensor &self) { return fillScalar(self, 0); }

/// Returns the elements of `self`, cut off at the end or followed by zeros, as
/// if the storage had been resized.
at::Tensor resize(const at::Tensor &self, c10::SymIntArrayRef size,
                  std::optional<at::MemoryFormat> format) {
  auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  int64_t have = self.numel(), want = c10::multiply_integers(sizes);
  at::Tensor flat =
      traceOp("aten::view_copy", {self, IValue(std::vector<int64_t>{have})});
  if (want > have)
    flat = traceOp(
        "aten::constant_pad_nd",
        {flat, IValue(std::vector<int64_t>{0, want - have}), IValue(0)});
  else if (want < have)
    flat = traceOp("aten::slice_copy.Tensor",
                   {flat, IValue(0), IValue(0), IValue(want), IValue(1)});
  at::MemoryFormat order = format.value_or(at::MemoryFormat::Contiguous);
  if (order == at::MemoryFormat::Contiguous)
    return traceOp("aten::view_copy", {flat, IValue(sizes)});
  return at::as_strided_copy(flat, sizes, packedStrides(sizes, order));
}

/// Wraps `resize_` at the Functionalize key. torch's kernel (2.13) ignores the
/// memory format and the tensor's offset, and turns a tensor that already has
/// the sizes into a view. It also keeps only the tensor's elements, although a
/// later `resize_` must show the rest of the tensor's memory again.
class ResizeInMemory final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    auto format = stack->back().toOptional<at::MemoryFormat>();
    Strides sizes = torch::jit::peek(*stack, 1, 3).toDimVector();
    at::Tensor self = torch::jit::peek(*stack, 0, 3).toTensor();
    TORCH_CHECK(!isLazyWrapper(self) || format != at::MemoryFormat::Preserve,
                "Unsupported memory format", at::MemoryFormat::Preserve);
    if (!isLazyWrapper(self) || isRejected(self, sizes))
      return previous.callBoxed(op, keys, stack);
    if (!format && self.sizes() == sizes)
      return torch::jit::drop(*stack, 2);
    Strides strides =
        format ? packedStrides(sizes, *format) : packedStrides(sizes);
    int64_t offset = self.sym_storage_offset().expect_int();
    int64_t count = c10::multiply_integers(sizes);
    int64_t end = count ? offset + count : 0;
    leavePythonStorage(self);
    if (end > memorySize(self)) {
      TORCH_CHECK(self.storage().use_count() == 1, "resize_ to sizes ",
                  c10::IntArrayRef(sizes),
                  " would enlarge memory that other tensors share, which "
                  "device 'lazy' doesn't support: call it on a clone().",
                  opSuffix("aten::resize_"));
      grow(self, end);
    }
    self.as_strided_(sizes, strides, offset);
    torch::jit::drop(*stack, 2);
  }

private:
  /// Whether torch's kernel must handle the call, either because it raises an
  /// error for negative sizes or because the memory has a different dtype.
  static bool isRejected(const at::Tensor &self, at::IntArrayRef sizes) {
    bool isNegative = std::any_of(sizes.begin(), sizes.end(),
                                  [](int64_t size) { return size < 0; });
    return isNegative ||
           functionalMemory(self).base().scalar_type() != self.scalar_type();
  }

  static int64_t memorySize(const at::Tensor &self) {
    return functionalMemory(self).base().numel();
  }

  /// Replaces the memory by `size` elements that begin with the present ones.
  static void grow(const at::Tensor &self, int64_t size) {
    int64_t have = memorySize(self);
    at::Tensor old = self.as_strided({have}, {1}, 0);
    at::Tensor added = at::empty({size - have}, self.options());
    at::Tensor value = valueOf(at::cat({old, added}));
    old.reset();
    replaceViewRecords(self, {});
    at::functionalization::impl::unsafeGetFunctionalWrapper(self)
        ->maybe_replace_storage(value);
  }
};

/// Wraps `resize_as_` at Functionalize; calls `resize_`, as torch's composite
/// does.
class ResizeAs final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    const at::Tensor self = torch::jit::peek(*stack, 0, 3).toTensor();
    const at::Tensor like = torch::jit::peek(*stack, 1, 3).toTensor();
    auto format = stack->back().toOptional<at::MemoryFormat>();
    if (!isLazyWrapper(self) || like.layout() != c10::kStrided)
      return previous.callBoxed(op, keys, stack);
    if (format == at::MemoryFormat::Preserve)
      format = like.suggest_memory_format();
    self.resize_(like.sizes(), format);
    torch::jit::drop(*stack, 2);
  }
};

} // namespace

void torch_ltc::registerCopyKernels(torch::Library &library) {
  library.impl("copy", TORCH_FN(copyKernel));
  library.impl("copy_", TORCH_FN(copyInPlace));
  library.impl("_copy_from", TORCH_FN(copyFrom));
  library.impl("_copy_from_and_resize", TORCH_FN(copyFromAndResize));
  library.impl("_to_copy", TORCH_FN(toCopy));
  library.impl("clone", TORCH_FN(cloneKernel));
  library.impl("detach", TORCH_FN(detach));
  library.impl("detach_copy", TORCH_FN(alias));
  library.impl("_lazy_clone", TORCH_FN(sameValue));
  library.impl("alias_copy", TORCH_FN(alias));
  library.impl("lift_fresh_copy", TORCH_FN(sameValue));
  library.impl("lift", TORCH_FN(lift));
  library.impl("lift_fresh", TORCH_FN(lift));
  library.impl("_reshape_alias_copy", TORCH_FN(reshapeAliasCopy));
  library.impl("fill_.Scalar", TORCH_FN(fillScalar));
  library.impl("zero_", TORCH_FN(zeroInPlace));
  library.impl("resize", TORCH_FN(resize));
}

void torch_ltc::registerResizeInMemory() {
  SilentRegistration silence;
  constexpr auto key = c10::DispatchKey::Functionalize;
  registerAround<ResizeInMemory>(findOp({"aten::resize_", ""}), key);
  registerAround<ResizeAs>(findOp({"aten::resize_as_", ""}), key);
}
