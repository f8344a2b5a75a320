//===- host_data.cpp - A lazy tensor's value in host memory ---------------===//

#include "memory/host_data.h"

#include "memory/lazy_device.h"
#include "memory/running_step.h"

#include <ATen/Functions.h>
#include <c10/util/accumulate.h>
#include <torch/csrc/lazy/backend/backend_device.h>

#include <cstring>

using namespace torch_ltc;
using torch::lazy::Shape;

size_t torch_ltc::byteSize(const Shape &shape) {
  return size_t(c10::multiply_integers(shape.sizes())) *
         c10::elementSize(shape.scalar_type());
}

HostData::HostData(Shape shape, BufferPtr buffer, CompletionPtr producer)
    : BackendData(lazyDevice(), std::move(shape)), bufferPtr(std::move(buffer)),
      producerPtr(std::move(producer)), locationId(captureLocationIfWanted()) {}

HostDataPtr HostData::create(Shape shape, BufferPtr buffer,
                             CompletionPtr producer) {
  return std::make_shared<HostData>(std::move(shape), std::move(buffer),
                                    std::move(producer));
}

HostDataPtr HostData::copyOf(const at::Tensor &tensor) {
  TORCH_CHECK(tensor.device().is_cpu() && tensor.layout() == c10::kStrided &&
                  !tensor.is_quantized(),
              "Only dense CPU tensors can be moved to device 'lazy', but this "
              "one is ",
              tensor.toString(), " on ", tensor.device(), ".");
  BufferPtr buffer = Buffer::allocate(tensor.nbytes());
  if (tensor.is_contiguous() && !tensor.is_neg() && !tensor.is_conj()) {
    if (tensor.nbytes())
      std::memcpy(buffer->data(), tensor.const_data_ptr(), tensor.nbytes());
  } else {
    at::Tensor target = at::from_blob(
        buffer->data(), tensor.sizes(),
        at::TensorOptions().dtype(tensor.scalar_type()).device(c10::kCPU));
    target.copy_(tensor);
  }
  memoryPool().noteCopy(tensor.nbytes());
  return create(Shape(tensor.scalar_type(), tensor.sizes()), std::move(buffer),
                nullptr);
}

HostDataPtr HostData::takeOver(at::Tensor tensor) {
  bool shareable =
      tensor.device().is_cpu() && tensor.layout() == c10::kStrided &&
      !tensor.is_quantized() && tensor.is_contiguous() && !tensor.is_neg() &&
      !tensor.is_conj() && tensor.storage_offset() == 0 &&
      tensor.has_storage() && tensor.nbytes() == tensor.storage().nbytes() &&
      tensor.nbytes() != 0 && tensor.use_count() == 1 &&
      tensor.storage().use_count() == 1;
  if (!shareable)
    return copyOf(tensor);
  Shape shape(tensor.scalar_type(), tensor.sizes());
  return create(std::move(shape), Buffer::adopt(tensor), nullptr);
}

HostDataPtr HostData::ofScalar(const at::Scalar &value) {
  bool isFloat = value.isFloatingPoint();
  BufferPtr buffer = Buffer::allocate(sizeof(int64_t));
  if (isFloat)
    *static_cast<double *>(buffer->data()) = value.toDouble();
  else
    *static_cast<int64_t *>(buffer->data()) = value.toLong();
  return create(Shape(isFloat ? at::kDouble : at::kLong, {}), std::move(buffer),
                nullptr);
}

static thread_local uint64_t waits = 0;

uint64_t HostData::numWaits() { return waits; }
void HostData::noteRead() { ++waits; }

void HostData::wait() const {
  ++waits;
  if (!producerPtr)
    return;
  if (!producerPtr->isDone())
    checkMayWait();
  if (const StepErrorPtr &error = producerPtr->waitFor(bufferPtr.get()))
    error->raise();
}

at::Tensor HostData::sharedTensor() const {
  wait();
  TORCH_CHECK(bufferPtr, "A lazy tensor has no value yet.");
  auto options =
      at::TensorOptions().dtype(shape().scalar_type()).device(c10::kCPU);
  // The tensor holds the data, not only its buffer: otherwise a step could be
  // given the buffer to overwrite while another thread reads the tensor.
  return at::from_blob(
      bufferPtr->data(), shape().sizes(),
      [keep = shared_from_this()](void *) mutable { keep.reset(); }, options);
}

at::Tensor HostData::copyToTensor() const {
  wait();
  TORCH_CHECK(bufferPtr, "A lazy tensor has no value yet.");
  at::Tensor result = at::empty(
      shape().sizes(),
      at::TensorOptions().dtype(shape().scalar_type()).device(c10::kCPU));
  if (result.nbytes())
    std::memcpy(result.data_ptr(), bufferPtr->data(), result.nbytes());
  return result;
}

at::Tensor HostData::copyToTensor(at::IntArrayRef strides) const {
  at::Tensor packed = sharedTensor();
  at::Tensor result =
      at::empty_strided(packed.sizes(), strides, packed.options());
  at::Tensor written = result; // each repeated element once
  for (int64_t dim = 0; dim < packed.dim() && packed.numel(); ++dim)
    if (strides[size_t(dim)] == 0) {
      written = written.narrow(dim, 0, 1);
      packed = packed.narrow(dim, 0, 1);
    }
  written.copy_(packed);
  return result;
}

torch::lazy::BackendData::Handle HostData::GetHandle() {
  // The buffer identifies the value: placeholders that were assigned the same
  // value are one parameter.
  return reinterpret_cast<Handle>(bufferPtr
                                      ? static_cast<void *>(bufferPtr.get())
                                      : static_cast<void *>(this));
}

void HostData::Assign(const torch::lazy::BackendData &data) {
  const auto &other = static_cast<const HostData &>(data);
  bufferPtr = other.bufferPtr;
  producerPtr = other.producerPtr;
  isBufferShared = true;
  other.isBufferShared = true;
}
