//===- Arena.cpp - Memory of one run --------------------------------------===//

#include "Arena.h"

#include "Diagnostics.h"

#include <cstdint>
#include <sys/mman.h>
#include <system_error>

using namespace torch_ltc::runtime;

namespace {
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t(2) << 20;
} // namespace

llvm::Expected<std::unique_ptr<Arena>> Arena::create(size_t bytes) {
  bool huge = bytes >= kHugePage;
  size_t alignment = huge ? kHugePage : kPage;
  size_t mappedBytes;
  if (__builtin_add_overflow(bytes, alignment + kPage, &mappedBytes))
    return failure("A program requests {0} bytes of temporary memory: its "
                   "executable is damaged. Compile it again.",
                   bytes);
  mappedBytes = mappedBytes / kPage * kPage;
  void *mapping = mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return failure("The machine can't allocate {0} MB for the temporaries of a "
                   "program ({1}): use a smaller batch.",
                   bytes >> 20, std::generic_category().message(errno));
  uintptr_t address = reinterpret_cast<uintptr_t>(mapping);
  address = (address + alignment - 1) / alignment * alignment;
  char *base = reinterpret_cast<char *>(address);
  // Huge pages reduce page faults in the first step and TLB misses later. The
  // hint has no effect where transparent huge pages are off.
  if (huge)
    madvise(base, bytes, MADV_HUGEPAGE);
  return std::unique_ptr<Arena>(new Arena(mapping, mappedBytes, base, bytes));
}

Arena::~Arena() { munmap(mapping, mappedBytes); }

ArenaPool &ArenaPool::process() {
  // Never destroyed, because a worker thread may still run at process exit.
  static ArenaPool *pool = new ArenaPool;
  return *pool;
}

llvm::Expected<std::unique_ptr<Arena>> ArenaPool::acquire(size_t bytes) {
  std::unique_ptr<Arena> tooSmall;
  {
    std::lock_guard<std::mutex> lock(mutex);
    size_t best = idle.size(), largest = 0;
    for (size_t i = 0; i < idle.size(); ++i) {
      size_t size = idle[i]->size();
      if (size >= bytes && (best == idle.size() || size < idle[best]->size()))
        best = i;
      if (size >= idle[largest]->size())
        largest = i;
    }
    if (best < idle.size()) {
      std::unique_ptr<Arena> arena = std::move(idle[best]);
      idle.erase(idle.begin() + best);
      return arena;
    }
    if (!idle.empty()) {
      tooSmall = std::move(idle[largest]);
      idle.erase(idle.begin() + largest);
      mapped -= tooSmall->size();
    }
    ++created;
  }
  // The old arena is unmapped before the new one is mapped, so that peak memory
  // use doesn't include both.
  tooSmall.reset();
  auto arena = Arena::create(bytes);
  if (arena) {
    std::lock_guard<std::mutex> lock(mutex);
    mapped += bytes;
  }
  return arena;
}

void ArenaPool::release(std::unique_ptr<Arena> arena) {
  std::lock_guard<std::mutex> lock(mutex);
  idle.push_back(std::move(arena));
}

size_t ArenaPool::idleBytes() {
  std::lock_guard<std::mutex> lock(mutex);
  size_t bytes = 0;
  for (const std::unique_ptr<Arena> &arena : idle)
    bytes += arena->size();
  return bytes;
}

size_t ArenaPool::bytes() {
  std::lock_guard<std::mutex> lock(mutex);
  return mapped;
}

size_t ArenaPool::numCreated() {
  std::lock_guard<std::mutex> lock(mutex);
  return created;
}
