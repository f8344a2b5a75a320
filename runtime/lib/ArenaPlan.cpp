//===- ArenaPlan.cpp - Arena offsets of a bound executable ----------------===//

#include "ArenaPlan.h"

#include "Arena.h"
#include "ExecutableNumbers.h"

#include "llvm/ADT/STLExtras.h"

#include <tuple>

using namespace torch_ltc::runtime;

namespace {

struct Range {
  int index;
  Buffer *buffer;
  Lifetime lifetime;
  uint64_t offset = 0;

  uint64_t end() const { return offset + alignedSize(buffer->bytes()); }
};

} // namespace

llvm::SmallVector<Lifetime>
torch_ltc::runtime::findLifetimes(Executable &executable) {
  llvm::SmallVector<Lifetime> lifetimes(executable.buffers_size());
  for (int i = 0; i < executable.commands_size(); ++i)
    forEachPart(*executable.mutable_commands(i), [&](const BufferRef &part) {
      Lifetime &lifetime = lifetimes[part.buffer()];
      if (lifetime.last < 0)
        lifetime.first = i;
      lifetime.last = i;
    });
  return lifetimes;
}

/// Returns the offset of the smallest gap that holds `range` between the placed
/// ranges whose lifetimes overlap that of `range`; if there is none, the end of
/// these ranges.
static uint64_t findOffset(const Range &range,
                           llvm::ArrayRef<const Range *> placed) {
  uint64_t best = 0, bestSize = UINT64_MAX, end = 0;
  for (const Range *other : placed) {
    if (other->lifetime.last < range.lifetime.first ||
        range.lifetime.last < other->lifetime.first)
      continue;
    uint64_t gap = other->offset > end ? other->offset - end : 0;
    if (gap >= range.buffer->bytes() && gap < bestSize) {
      best = end;
      bestSize = gap;
    }
    end = std::max(end, other->end());
  }
  return bestSize != UINT64_MAX ? best : end;
}

void torch_ltc::runtime::planArena(Executable &executable,
                                   llvm::ArrayRef<Lifetime> lifetimes) {
  std::vector<Range> ranges;
  for (int i = 0; i < executable.buffers_size(); ++i)
    if (executable.buffers(i).has_arena_offset())
      ranges.push_back({i, executable.mutable_buffers(i), lifetimes[i]});
  // The largest buffers are placed first: smaller ones fit into the gaps that
  // they leave.
  llvm::sort(ranges, [](const Range &a, const Range &b) {
    return std::tuple(b.buffer->bytes(), a.index) <
           std::tuple(a.buffer->bytes(), b.index);
  });
  std::vector<const Range *> placed; // by offset
  uint64_t bytes = 0;
  for (Range &range : ranges) {
    range.offset = findOffset(range, placed);
    range.buffer->set_arena_offset(range.offset);
    bytes = std::max(bytes, range.end());
    placed.insert(llvm::upper_bound(placed, &range,
                                    [](const Range *a, const Range *b) {
                                      return a->offset < b->offset;
                                    }),
                  &range);
  }
  executable.set_arena_bytes(bytes);
}
