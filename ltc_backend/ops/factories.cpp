//===- factories.cpp - Uninitialized tensors ------------------------------===//
//
// torch creates most tensors as `empty` and overwrites them at once, so an
// `empty` that is never read must cost nothing: it is a traced constant.
//
//===----------------------------------------------------------------------===//

#include "graph/inference_tensors.h"
#include "graph/live_tensors.h"
#include "memory/lazy_device.h"
#include "ops/registration.h"
#include "shape/strides.h"
#include "tracing/argument_walk.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"
#include "tracing/writing_call.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/Contiguity.h>

#include <limits>

using namespace torch_ltc;
using c10::IValue;

namespace {

/// The value that eager fills new memory with in deterministic mode.
at::Scalar deterministicFill(at::ScalarType dtype) {
  switch (dtype) {
  case at::ScalarType::Byte:
    return int64_t(std::numeric_limits<uint8_t>::max());
  case at::ScalarType::Char:
    return int64_t(std::numeric_limits<int8_t>::max());
  case at::ScalarType::Short:
    return int64_t(std::numeric_limits<int16_t>::max());
  case at::ScalarType::Int:
    return int64_t(std::numeric_limits<int32_t>::max());
  case at::ScalarType::Long:
    return std::numeric_limits<int64_t>::max();
  case at::ScalarType::Bool:
    return true;
  default:
    return std::numeric_limits<double>::quiet_NaN();
  }
}

bool isMemoryFilled() {
  const at::Context &context = at::globalContext();
  return context.deterministicAlgorithms() &&
         context.deterministicFillUninitializedMemory();
}

at::Tensor emptyTensor(at::IntArrayRef sizes, at::ScalarType dtype) {
  NewMemory newMemory;
  at::detail::check_size_nonnegative(sizes);
  auto options = at::TensorOptions().dtype(dtype);
  if (!isSupportedDType(dtype))
    return makeTensor(HostData::copyOf(isMemoryFilled()
                                           ? at::empty(sizes, options)
                                           : at::zeros(sizes, options)));
  if (isMemoryFilled())
    return traceOp("aten::full", {IValue(sizes), deterministicFill(dtype),
                                  IValue(int64_t(dtype))});
  return traceOp("aten::zeros", {IValue(sizes), IValue(int64_t(dtype))});
}

at::Tensor emptyStridedTensor(at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::ScalarType dtype) {
  at::Tensor result = emptyTensor(sizes, dtype);
  if (result.strides() != strides) {
    // Raises eager's error for strides that are negative or too large.
    at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
    setGeometry(result, strides);
  }
  return result;
}

/// Whether a tensor of these sizes and strides uses each element of its memory
/// once.
bool isDense(at::IntArrayRef sizes, at::IntArrayRef strides) {
  return sizes.size() != strides.size() || c10::multiply_integers(sizes) == 0 ||
         c10::_compute_non_overlapping_and_dense(sizes, strides);
}

/// A tensor on memory with gaps, or with elements that share memory.
at::Tensor viewOfMemory(at::IntArrayRef sizes, at::IntArrayRef strides,
                        at::ScalarType dtype) {
  size_t size =
      at::detail::computeStorageNbytes(sizes, strides, /*itemsize=*/1);
  at::Tensor memory = wrapIfOutside(emptyTensor(int64_t(size), dtype));
  // Autograd doesn't see the view.
  at::AutoDispatchBelowADInplaceOrView noAutograd;
  return memory.as_strided(sizes, strides);
}

/// Raises eager's errors for arguments that a trace doesn't contain.
void checkIgnored(size_t rank, std::optional<bool> isPinned,
                  std::optional<at::MemoryFormat> format) {
  bool hasFormat = format && *format != at::MemoryFormat::Contiguous;
  if (isPinned.value_or(false) || hasFormat)
    at::empty(std::vector<int64_t>(rank, 1),
              at::TensorOptions().device(at::kCPU).pinned_memory(isPinned),
              format);
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device> device,
                 std::optional<bool> isPinned,
                 std::optional<at::MemoryFormat> format) {
  checkLazyDevice(device.value_or(at::kLazy));
  checkIgnored(size.size(), isPinned, format);
  auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  at::Tensor result = emptyTensor(sizes, at::dtype_or_default(dtype));
  if (format && *format != at::MemoryFormat::Contiguous)
    setGeometry(result, packedStrides(sizes, *format));
  return wrapIfOutside(std::move(result));
}

at::Tensor emptyStrided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                        std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout>,
                        std::optional<at::Device> device, std::optional<bool>) {
  checkLazyDevice(device.value_or(at::kLazy));
  auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  auto strides = C10_AS_INTARRAYREF_SLOW(stride);
  at::ScalarType type = at::dtype_or_default(dtype);
  if (isDense(sizes, strides))
    return wrapIfOutside(emptyStridedTensor(sizes, strides, type));
  return viewOfMemory(sizes, strides, type);
}

at::Tensor emptyLike(const at::Tensor &self,
                     std::optional<at::ScalarType> dtype,
                     std::optional<at::Layout>,
                     std::optional<at::Device> device, std::optional<bool>,
                     std::optional<at::MemoryFormat> format) {
  at::ScalarType type = dtype.value_or(self.scalar_type());
  Strides strides = copyStrides(self, format);
  if (device && !device->is_lazy())
    return at::empty_strided(self.sizes(), strides,
                             at::TensorOptions().dtype(type).device(*device));
  return emptyStridedTensor(self.sizes(), strides, type);
}

at::Tensor newEmpty(const at::Tensor &self, c10::SymIntArrayRef size,
                    std::optional<at::ScalarType> dtype,
                    std::optional<at::Layout>, std::optional<at::Device> device,
                    std::optional<bool>) {
  at::ScalarType type = dtype.value_or(self.scalar_type());
  auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  if (device && !device->is_lazy())
    return at::empty(sizes, at::TensorOptions().dtype(type).device(*device));
  return emptyTensor(sizes, type);
}

at::Tensor newEmptyStrided(const at::Tensor &self, c10::SymIntArrayRef size,
                           c10::SymIntArrayRef stride,
                           std::optional<at::ScalarType> dtype,
                           std::optional<at::Layout>,
                           std::optional<at::Device> device,
                           std::optional<bool>) {
  at::ScalarType type = dtype.value_or(self.scalar_type());
  auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  auto strides = C10_AS_INTARRAYREF_SLOW(stride);
  if (device && !device->is_lazy())
    return at::empty_strided(sizes, strides,
                             at::TensorOptions().dtype(type).device(*device));
  return emptyStridedTensor(sizes, strides, type);
}

/// The kernel of `new_empty_strided` at key Functionalize. The memory of the
/// result may have gaps, and below functionalization no kernel could create a
/// view.
class NewEmptyStrided final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    // (self, size, stride, dtype, layout, device, pin_memory)
    const size_t numArguments = op.schema().arguments().size();
    auto arguments = torch::jit::last(*stack, numArguments);
    const at::Tensor &self = arguments[0].toTensor();
    const IValue &dtype = arguments[3], &device = arguments[5];
    const at::DimVector sizes = arguments[1].toDimVector();
    const at::DimVector strides = arguments[2].toDimVector();
    if (!isLazyWrapper(self) || isDense(sizes, strides) ||
        !(device.isNone() || device.toDevice().is_lazy()))
      return previous.callBoxed(op, keys, stack);
    at::Tensor result = viewOfMemory(sizes, strides,
                                     dtype.isNone() ? self.scalar_type()
                                                    : dtype.toScalarType());
    torch::jit::drop(*stack, numArguments);
    torch::jit::push(*stack, std::move(result));
  }
};

/// Forward-mode differentiation checks with this op whether a tangent matches
/// its value. torch's kernels compare the sizes of storages, which tensors
/// without wrappers don't have.
bool hasSameStorageSize(const at::Tensor &a, const at::Tensor &b) {
  return a.numel() == b.numel();
}

/// Zeros with the geometry of `value`, with leading dims taken from `tangent`.
/// Each batch has memory of its own, as in eager's kernel.
at::Tensor zeroTangent(const at::Tensor &tangent, const at::Tensor &value,
                       int64_t numBatchDims) {
  Strides sizes(value.sizes()), strides(value.strides());
  int64_t next = int64_t(at::detail::computeStorageNbytes(
      sizes, strides, /*itemsize=*/1, size_t(value.storage_offset())));
  for (int64_t dim = numBatchDims; dim-- > 0;) {
    sizes.insert(sizes.begin(), tangent.size(dim));
    strides.insert(strides.begin(), next);
    next *= tangent.size(dim);
  }
  at::Tensor zeros = emptyTensor(sizes, value.scalar_type());
  setGeometry(zeros, strides, value.storage_offset());
  return zeros;
}

} // namespace

void torch_ltc::registerFactoryKernels(torch::Library &library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(emptyStrided));
  library.impl("empty_like", TORCH_FN(emptyLike));
  library.impl("new_empty", TORCH_FN(newEmpty));
  library.impl("new_empty_strided", TORCH_FN(newEmptyStrided));
  library.impl("_has_same_storage_numel", TORCH_FN(hasSameStorageSize));
  library.impl("_new_zeros_with_same_feature_meta", TORCH_FN(zeroTangent));
}

void torch_ltc::registerNewEmptyStrided() {
  registerAround<NewEmptyStrided>(findOp({"aten::new_empty_strided", ""}),
                                  c10::DispatchKey::Functionalize);
}
