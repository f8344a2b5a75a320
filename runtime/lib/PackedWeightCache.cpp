//===- PackedWeightCache.cpp - A weight in packed order -------------------===//

#include "PackedWeightCache.h"

#include <atomic>

using namespace torch_ltc::runtime;

static std::atomic<size_t> total{0};

PackedWeightCache::PackedWeightCache(PackedWeightCache &&other) noexcept
    : memory(std::move(other.memory)), cachedContents(other.cachedContents),
      lastContents(other.lastContents) {}

PackedWeightCache::~PackedWeightCache() { release(); }

char *PackedWeightCache::place(uint64_t contents, size_t bytes) {
  release();
  bool isSeenAgain = contents && contents == lastContents;
  lastContents = contents;
  if (!isSeenAgain)
    return nullptr;
  auto created = Arena::create(bytes);
  if (!created) {
    // The run continues without the copy, as in the first run.
    llvm::consumeError(created.takeError());
    return nullptr;
  }
  memory = std::move(*created);
  total += memory->size();
  return memory->data();
}

size_t PackedWeightCache::totalBytes() { return total; }

void PackedWeightCache::release() {
  if (memory)
    total -= memory->size();
  memory.reset();
  cachedContents = 0;
}
