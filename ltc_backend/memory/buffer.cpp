//===- buffer.cpp - Host memory behind lazy tensors -----------------------===//

#include "memory/buffer.h"

#include <ATen/core/Tensor.h>

#include <cstdlib>

using namespace torch_ltc;

struct Buffer::Owner {
  c10::Storage storage;
  int64_t counted; // bytes of it that aren't in the pool's own statistics
};

namespace {

/// Raises the size up to which glibc allocates from the heap. glibc maps each
/// larger allocation separately, and returns the end of the heap to the system
/// if more than twice that size is free. When a program frees a mapped
/// allocation, the limit grows to the size of this allocation. The pool seldom
/// frees memory, so the temporaries of CPU kernels would be mapped, and their
/// pages cleared, in each step. Therefore this function frees an allocation of
/// the largest size that raises the limit. No page of it is touched.
void raiseMappingLimit() {
  constexpr size_t largest = (size_t(32) << 20) - (64 << 10);
  // Without `volatile`, compilers remove the two calls, because the memory
  // isn't used.
  void *volatile memory = std::malloc(largest);
  std::free(memory);
}

void *allocate(size_t bytes) {
  if (void *memory = memoryPool().allocate(bytes))
    return memory;
  TORCH_CHECK(false, "Device 'lazy' is out of memory: ", bytes,
              " bytes couldn't be allocated; ", memoryPool().values().allocated,
              " bytes are in use by lazy tensors.");
}

} // namespace

// Never destroyed: tensors may outlive static destruction.
MemoryPool &torch_ltc::memoryPool() {
  static MemoryPool *instance = [] {
    raiseMappingLimit();
    return new MemoryPool;
  }();
  return *instance;
}

Buffer::Buffer(void *memory, size_t bytes, std::unique_ptr<Owner> owner)
    : memory(memory), bytes(bytes), owner(std::move(owner)) {
  noteWrite();
}

void Buffer::noteWrite() {
  static std::atomic<uint64_t> last{0};
  contentsNumber = ++last;
}

bool Buffer::claimAddress(const void *holder) {
  const void *first = nullptr;
  return addressHolder.compare_exchange_strong(first, holder) ||
         first == holder;
}

BufferPtr Buffer::allocate(size_t bytes) {
  void *memory = ::allocate(bytes);
  return BufferPtr(new Buffer(memory, bytes, nullptr));
}

BufferPtr Buffer::deferred(size_t bytes) {
  return BufferPtr(new Buffer(nullptr, bytes, nullptr));
}

void Buffer::materialize() {
  if (!memory)
    memory = ::allocate(bytes);
}

void Buffer::take(const at::Tensor &tensor, bool isPooled) {
  TORCH_INTERNAL_ASSERT(!memory && tensor.nbytes() == bytes);
  const int64_t counted = isPooled ? 0 : int64_t(bytes);
  owner = std::make_unique<Owner>(Owner{tensor.storage(), counted});
  memory = tensor.data_ptr();
  memoryPool().addLive(counted);
}

BufferPtr Buffer::adopt(const at::Tensor &tensor) {
  BufferPtr buffer = deferred(tensor.nbytes());
  buffer->take(tensor, /*isPooled=*/false);
  return buffer;
}

Buffer::~Buffer() {
  if (owner)
    memoryPool().addLive(-owner->counted);
  else if (memory)
    memoryPool().free(memory, bytes);
}
