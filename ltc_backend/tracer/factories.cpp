//===- factories.cpp - Tensors without contents ---------------------------===//
//
// torch makes most tensors as `empty` and writes into them at once, so an
// `empty` that is never read must cost nothing: it is a traced constant.
//
//===----------------------------------------------------------------------===//

#include "executor/live_tensors.h"
#include "tracer/argument_walk.h"
#include "tracer/registration.h"
#include "tracer/trace.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>

using namespace torch_ltc;
using c10::IValue;

namespace {

at::Tensor emptyTensor(at::IntArrayRef sizes, at::ScalarType dtype) {
  at::detail::check_size_nonnegative(sizes);
  if (!isSupportedDType(dtype))
    return makeTensor(
        HostData::copyOf(at::zeros(sizes, at::TensorOptions().dtype(dtype))));
  return traceOp("aten::zeros", {IValue(sizes), IValue(int64_t(dtype))});
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device> device,
                 std::optional<bool>, std::optional<at::MemoryFormat>) {
  checkLazyDevice(device.value_or(at::kLazy));
  return wrapIfOutside(
      emptyTensor(C10_AS_INTARRAYREF_SLOW(size), at::dtype_or_default(dtype)));
}

at::Tensor emptyStrided(c10::SymIntArrayRef size, c10::SymIntArrayRef,
                        std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout>,
                        std::optional<at::Device> device, std::optional<bool>) {
  checkLazyDevice(device.value_or(at::kLazy));
  return wrapIfOutside(
      emptyTensor(C10_AS_INTARRAYREF_SLOW(size), at::dtype_or_default(dtype)));
}

at::Tensor emptyLike(const at::Tensor &self,
                     std::optional<at::ScalarType> dtype,
                     std::optional<at::Layout>,
                     std::optional<at::Device> device, std::optional<bool>,
                     std::optional<at::MemoryFormat>) {
  at::ScalarType type = dtype.value_or(self.scalar_type());
  if (device && !device->is_lazy())
    return at::empty(self.sizes(),
                     at::TensorOptions().dtype(type).device(*device));
  return emptyTensor(self.sizes(), type);
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
                           c10::SymIntArrayRef,
                           std::optional<at::ScalarType> dtype,
                           std::optional<at::Layout> layout,
                           std::optional<at::Device> device,
                           std::optional<bool> pinMemory) {
  return newEmpty(self, size, dtype, layout, device, pinMemory);
}

} // namespace

std::vector<std::string>
torch_ltc::registerFactoryKernels(torch::Library &library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(emptyStrided));
  library.impl("empty_like", TORCH_FN(emptyLike));
  library.impl("new_empty", TORCH_FN(newEmpty));
  library.impl("new_empty_strided", TORCH_FN(newEmptyStrided));
  return {"aten::empty.memory_format", "aten::empty_strided",
          "aten::empty_like", "aten::new_empty", "aten::new_empty_strided"};
}
