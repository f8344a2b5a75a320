//===- temporary_values.cpp - Memory of values between ops ----------------===//

#include "programs/temporary_values.h"

#include "memory/buffer.h"

#include <c10/core/CPUAllocator.h>

#include <mutex>
#include <utility>

using namespace torch_ltc;

namespace {

thread_local bool areTemporary = false;

/// Smaller values fill gaps on the heap.
constexpr size_t kLarge = 1 << 20;

/// What precedes the memory of a value; as large as the memory's alignment.
struct alignas(64) Header {
  size_t bytes; // of the header and the value
};

void freeValue(void *memory) {
  auto *header = static_cast<Header *>(memory) - 1;
  temporariesPool().free(header, header->bytes);
}

/// Calls torch's allocator except for large temporary values.
class Allocator final : public c10::Allocator {
public:
  explicit Allocator(c10::Allocator *inner) : inner(inner) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (!areTemporary || bytes < kLarge)
      return inner->allocate(bytes);
    const size_t whole = bytes + sizeof(Header);
    auto *header = static_cast<Header *>(temporariesPool().allocate(whole));
    if (!header) // torch's allocator raises its error
      return inner->allocate(bytes);
    header->bytes = whole;
    return {header + 1, header + 1, &freeValue, c10::DeviceType::CPU};
  }

  bool is_simple_data_ptr(const c10::DataPtr &pointer) const override {
    return inner->is_simple_data_ptr(pointer);
  }

  // Code that calls `raw_allocate` while ops run would get memory that this
  // function doesn't free; none of torch's ops does (2.13).
  c10::DeleterFnPtr raw_deleter() const override {
    return inner->raw_deleter();
  }

  void copy_data(void *to, const void *from, size_t bytes) const override {
    inner->copy_data(to, from, bytes);
  }

private:
  c10::Allocator *const inner;
};

} // namespace

TemporaryValues::TemporaryValues() : before(std::exchange(areTemporary, true)) {
  static std::once_flag isInstalled;
  std::call_once(isInstalled, [] {
    // Never destroyed: tensors refer to it.
    c10::SetCPUAllocator(new Allocator(c10::GetCPUAllocator()));
  });
}

TemporaryValues::~TemporaryValues() { areTemporary = before; }
