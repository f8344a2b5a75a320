//===- skeleton_memory.cpp - Remembers skeletons and numbers --------------===//

#include "general/skeleton_memory.h"

#include "general/predicted_traces.h"

#include <algorithm>

using namespace torch_ltc;

namespace {

/// Maximum number of ops of all remembered graphs; an op with its numbers takes
/// about a kilobyte.
constexpr size_t kMaxRememberedOps = 20000;
/// Maximum number of attempts to find a general graph for a skeleton; each
/// takes about as long as tracing some steps.
constexpr size_t kMaxAttempts = 12;

} // namespace

SkeletonMemory &SkeletonMemory::get() {
  static auto *memory = new SkeletonMemory;
  return *memory;
}

SkeletonMemory::Entry SkeletonMemory::lookUp(const GraphSnapshotPtr &graph,
                                             const TraceNumbers &numbers) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = bySkeleton.find(numbers.skeleton);
  if (found != bySkeleton.end()) {
    entries.splice(entries.begin(), entries, found->second);
    return entries.front();
  }
  Entry entry;
  entry.skeleton = numbers.skeleton;
  entry.base = graph;
  entries.push_front(std::move(entry));
  bySkeleton[numbers.skeleton] = entries.begin();
  numOps += graph->numOps;
  while (numOps > kMaxRememberedOps && entries.size() > 1) {
    numOps -= entries.back().base->numOps;
    bySkeleton.erase(entries.back().skeleton);
    entries.pop_back();
  }
  return entries.front();
}

std::optional<SkeletonMemory::Entry>
SkeletonMemory::find(const Hash128 &skeleton) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = bySkeleton.find(skeleton);
  if (found == bySkeleton.end())
    return std::nullopt;
  return *found->second;
}

void SkeletonMemory::store(const Entry &changed) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = bySkeleton.find(changed.skeleton);
  if (found != bySkeleton.end())
    *found->second = changed;
}

Sighting SkeletonMemory::note(const GraphSnapshotPtr &traced) {
  GraphSnapshotPtr graph = withOpenEnds(traced);
  Sighting result;
  result.numbers = numbersOf(*graph);
  const TraceNumbers &numbers = result.numbers;
  Entry entry = lookUp(graph, numbers);
  if (entry.general) {
    if (auto values = entry.general->bind(numbers, &result.reason)) {
      result.general = entry.general;
      result.values = std::move(*values);
      return result;
    }
    if (entry.traces.empty()) {
      entry.traces = entry.general->numbers();
      std::erase_if(entry.traces, [&](const TraceNumbers &known) {
        return std::ranges::find(entry.predicted, known) !=
               entry.predicted.end();
      });
    }
  }
  if (hasDynamicMarks(*graph) && !hasDynamicMarks(*entry.base))
    entry.base = graph;
  // A graph may be noted again because its program was dropped or options
  // changed.
  if (std::ranges::find(entry.traces, numbers) != entry.traces.end())
    return result;
  entry.traces.push_back(numbers);
  if (entry.traces.size() > GeneralGraph::kMaxTraces)
    entry.traces.erase(entry.traces.begin());
  entry.isChanged = true;
  store(entry);
  return result;
}

GeneralGraphPtr SkeletonMemory::makeGeneral(Entry &entry, std::string &reason) {
  entry.predicted = predictTraces(*entry.base, entry.traces);
  if (!entry.predicted.empty()) {
    std::vector<TraceNumbers> all = entry.predicted;
    all.insert(all.end(), entry.traces.begin(), entry.traces.end());
    if (GeneralGraphPtr general =
            GeneralGraph::generalize(entry.base, std::move(all), reason))
      return general;
    entry.predicted.clear();
  }
  if (entry.traces.size() < 2) {
    if (reason.empty())
      reason =
          "no size but the present one is valid, as far as one trace shows";
    return nullptr;
  }
  if (GeneralGraphPtr general =
          GeneralGraph::generalize(entry.base, entry.traces, reason))
    return general;
  entry.predicted = predictBounds(*entry.base, entry.traces);
  if (entry.predicted.empty())
    return nullptr;
  std::vector<TraceNumbers> all = entry.predicted;
  // Limits the number of real traces: if there are too many traces,
  // `generalize` drops the first, which are the predicted ones.
  const size_t numTraces =
      std::min(entry.traces.size(), GeneralGraph::kMaxTraces - all.size());
  all.insert(all.end(), entry.traces.end() - ptrdiff_t(numTraces),
             entry.traces.end());
  std::string why;
  GeneralGraphPtr general =
      GeneralGraph::generalize(entry.base, std::move(all), why);
  if (!general)
    entry.predicted.clear();
  return general;
}

// The lock isn't held while a general graph is made: Meta kernels in Python
// wait for the GIL, whose holder may wait for the lock.
void SkeletonMemory::generalize(Sighting &sighting) {
  std::optional<Entry> entry = find(sighting.numbers.skeleton);
  if (!entry || !entry->isChanged || entry->attempts == kMaxAttempts ||
      (entry->traces.size() < 2 && !hasDynamicMarks(*entry->base)))
    return;
  ++entry->attempts;
  entry->isChanged = false;
  std::string why;
  GeneralGraphPtr general = makeGeneral(*entry, why);
  if (sighting.reason.empty() || !general)
    sighting.reason = why;
  if (general) {
    if (auto values = general->bind(sighting.numbers, &sighting.reason)) {
      sighting.general = general;
      sighting.values = std::move(*values);
    }
    entry->general = general;
    entry->traces.clear();
  }
  store(*entry);
}

void SkeletonMemory::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  entries.clear();
  bySkeleton.clear();
  numOps = 0;
}
