//===- skeleton_memory.cpp - Skeletons that were seen ---------------------===//

#include "general/skeleton_memory.h"

#include <algorithm>

using namespace torch_ltc;

namespace {

/// Of all graphs together; an op takes about a kilobyte with its numbers.
constexpr size_t maxOps = 20000;
/// To find a general graph for a skeleton; each takes about as long as tracing
/// some steps.
constexpr size_t maxAttempts = 12;

} // namespace

SkeletonMemory &SkeletonMemory::get() {
  static auto *memory = new SkeletonMemory;
  return *memory;
}

SkeletonMemory::Entry SkeletonMemory::lookUp(const GraphSnapshotPtr &graph,
                                             const TraceNumbers &numbers,
                                             bool &isFirst) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = bySkeleton.find(numbers.skeleton);
  isFirst = found == bySkeleton.end();
  if (!isFirst) {
    entries.splice(entries.begin(), entries, found->second);
    return entries.front();
  }
  Entry entry;
  entry.skeleton = numbers.skeleton;
  entry.base = graph;
  entry.traces.push_back(numbers);
  entries.push_front(std::move(entry));
  bySkeleton[numbers.skeleton] = entries.begin();
  numOps += graph->numOps;
  while (numOps > maxOps && entries.size() > 1) {
    numOps -= entries.back().base->numOps;
    bySkeleton.erase(entries.back().skeleton);
    entries.pop_back();
  }
  return entries.front();
}

void SkeletonMemory::store(const Entry &changed) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = bySkeleton.find(changed.skeleton);
  if (found != bySkeleton.end())
    *found->second = changed;
}

// The lock isn't held while a general graph is made: Meta kernels in Python
// wait for the interpreter's lock, whose holder may wait here.
Sighting SkeletonMemory::note(const GraphSnapshotPtr &graph) {
  Sighting result;
  result.numbers = numbersOf(*graph);
  const TraceNumbers &numbers = result.numbers;
  bool isFirst = false;
  Entry entry = lookUp(graph, numbers, isFirst);
  if (isFirst)
    return result;
  if (entry.general) {
    if (auto values = entry.general->bind(numbers, &result.reason)) {
      result.general = entry.general;
      result.values = std::move(*values);
      return result;
    }
    entry.traces = entry.general->numbers();
    entry.general = nullptr;
  }
  // The same graph again: its program was dropped, or options changed.
  bool isKnown = std::ranges::find(entry.traces, numbers) != entry.traces.end();
  if (isKnown || entry.attempts == maxAttempts)
    return result;
  ++entry.attempts;
  entry.traces.push_back(numbers);
  if (entry.traces.size() > GeneralGraph::maxTraces)
    entry.traces.erase(entry.traces.begin());
  std::string why;
  entry.general = GeneralGraph::generalise(entry.base, entry.traces, why);
  if (result.reason.empty() || !entry.general)
    result.reason = why;
  std::optional<SymbolValues> values;
  if (entry.general)
    values = entry.general->bind(numbers, &result.reason);
  if (values) {
    result.general = entry.general;
    result.values = std::move(*values);
    entry.traces.clear();
  }
  store(entry);
  return result;
}

void SkeletonMemory::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  entries.clear();
  bySkeleton.clear();
  numOps = 0;
}
