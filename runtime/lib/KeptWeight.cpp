//===- KeptWeight.cpp - A weight in a library's packed order --------------===//

#include "KeptWeight.h"

#include <atomic>

using namespace torch_ltc::runtime;

static std::atomic<size_t> total{0};

KeptWeight::KeptWeight(KeptWeight &&other) noexcept
    : memory(std::move(other.memory)), keptContents(other.keptContents),
      lastContents(other.lastContents) {}

KeptWeight::~KeptWeight() { release(); }

char *KeptWeight::place(uint64_t contents, size_t bytes) {
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

size_t KeptWeight::totalBytes() { return total; }

void KeptWeight::release() {
  if (memory)
    total -= memory->size();
  memory.reset();
  keptContents = 0;
}
