//===- host_data.h - A lazy tensor's value in host memory -------*- C++ -*-===//
//
// `HostData` is this backend's `BackendData`: a shape, a buffer, and the step
// that fills it. Values are immutable: an in-place update creates new data. A
// step may still reuse the buffer of data that nobody can read any more
// (graph/donation.h); therefore references are counted on `HostData`, while
// scheduled steps hold only the `Buffer`.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_MEMORY_HOST_DATA_H
#define TORCH_LTC_MEMORY_HOST_DATA_H

#include "memory/buffer.h"
#include "memory/completion.h"
#include "memory/size_marks.h"
#include "source/source_location.h"

#include <torch/csrc/lazy/backend/backend_data.h>

#include <atomic>

namespace torch_ltc {

class HostData;
using HostDataPtr = std::shared_ptr<HostData>;

class HostData final : public torch::lazy::BackendData,
                       public std::enable_shared_from_this<HostData> {
public:
  /// Data that a step will write; `producer` finishes after the write.
  static HostDataPtr create(torch::lazy::Shape shape, BufferPtr buffer,
                            CompletionPtr producer);
  /// A copy of a CPU tensor of any strides.
  static HostDataPtr copyOf(const at::Tensor &tensor);
  /// Takes over a CPU tensor that only the caller owns: shares its memory if it
  /// is contiguous and owns all of its storage, otherwise copies it.
  static HostDataPtr takeOver(at::Tensor tensor);
  /// Data of rank 0 with a number as float64 or int64.
  static HostDataPtr ofScalar(const at::Scalar &value);

  HostData(torch::lazy::Shape shape, BufferPtr buffer, CompletionPtr producer);

  const BufferPtr &buffer() const { return bufferPtr; }
  const CompletionPtr &producer() const { return producerPtr; }
  bool isReady() const { return !producerPtr || producerPtr->isDone(); }
  /// Waits for the producer; throws its error.
  void wait() const;
  /// How often the calling thread has called `wait` or `noteRead`: once for
  /// each read of a value.
  static uint64_t numWaits();
  /// Counts a read that needs no wait.
  static void noteRead();

  /// Waits, and returns a CPU tensor that shares the memory and keeps it alive.
  /// The caller must not write to the tensor or pass it to the user.
  at::Tensor sharedTensor() const;
  /// Waits, and returns a CPU tensor with its own memory.
  at::Tensor copyToTensor() const;
  /// Waits, and returns a copy with the given strides. Elements of the copy may
  /// share memory only along dimensions of stride 0.
  at::Tensor copyToTensor(at::IntArrayRef strides) const;

  const std::string &name() const { return nameText; }
  void setName(std::string name) { nameText = std::move(name); }
  const SizeMarks &sizeMarks() const { return marks; }
  void setSizeMarks(SizeMarks changed) { marks = std::move(changed); }
  /// The user's line that created the value, with option source_info; 0 if
  /// unknown.
  LocationId location() const { return locationId; }
  void setLocation(LocationId id) { locationId = id; }

  Handle GetHandle() override;
  void Assign(const torch::lazy::BackendData &data) override;
  bool HasValue() const override { return bufferPtr != nullptr; }

  /// Whether other data has the same buffer, so that no step may overwrite it.
  bool sharesBuffer() const { return isBufferShared; }

private:
  friend class PostOrder;
  // See graph/graph.h.
  mutable uint64_t walkNumber = 0;
  mutable uint32_t walkIndex = 0;
  mutable std::atomic<bool> isBufferShared{false};
  BufferPtr bufferPtr;
  CompletionPtr producerPtr;
  std::string nameText;
  SizeMarks marks;
  LocationId locationId = 0;
};

/// Size in bytes of a contiguous tensor of this shape.
size_t byteSize(const torch::lazy::Shape &shape);

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_HOST_DATA_H
