//===- skeleton_memory.cpp - Remembers skeletons and numbers --------------===//

#include "general/skeleton_memory.h"

#include "general/predicted_traces.h"

#include <algorithm>

using namespace torch_ltc;

namespace {

/// Maximum total number of ops of the remembered graphs; an op with its numbers
/// takes about a kilobyte.
constexpr size_t kMaxRememberedOps = 20000;
/// Maximum number of failed attempts to find a general graph for a skeleton;
/// each takes about as long as tracing some steps.
constexpr size_t kMaxFailures = 12;
/// Maximum number of general graphs of a skeleton, and maximum number of failed
/// compilations of such graphs.
constexpr size_t kMaxGeneralGraphs = 8;
constexpr size_t kMaxRejected = 3;
/// Pairs of traces are tried only for small graphs, up to this number of pairs:
/// it is unlikely that two functions have the same long skeleton.
constexpr size_t kMaxOpsOfPairs = 100;
constexpr size_t kMaxPairs = 60;
constexpr size_t kMaxRecent = 12;

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
  for (const Known &known : entry.known) {
    std::string reason;
    if (auto values = known.general->bind(numbers, &reason)) {
      result.general = known.general;
      result.values = std::move(*values);
      result.reason.clear();
      return result;
    }
    if (result.reason.empty())
      result.reason = std::move(reason);
  }
  if (hasDynamicMarks(*graph) && !hasDynamicMarks(*entry.base))
    entry.base = graph;
  // A graph may be noted again because its program was dropped or options
  // changed.
  if (std::ranges::find(entry.pending, numbers) != entry.pending.end())
    return result;
  if (graph->numOps <= kMaxOpsOfPairs) {
    entry.recent.push_back(numbers);
    if (entry.recent.size() > kMaxRecent)
      entry.recent.erase(entry.recent.begin());
  }
  entry.pending.push_back(numbers);
  if (entry.pending.size() > GeneralGraph::kMaxTraces)
    entry.pending.erase(entry.pending.begin());
  entry.isChanged = true;
  store(entry);
  return result;
}

GeneralGraphPtr SkeletonMemory::makeGeneral(Entry &entry,
                                            std::vector<TraceNumbers> traces,
                                            std::string &reason) {
  auto generalize = [&](std::vector<TraceNumbers> all,
                        std::string &why) -> GeneralGraphPtr {
    GeneralGraphPtr general =
        GeneralGraph::generalize(entry.base, std::move(all), why);
    if (general && std::ranges::find(entry.rejected, general->hash()) !=
                       entry.rejected.end()) {
      why = "it has no program for all sizes";
      return nullptr;
    }
    return general;
  };
  std::vector<TraceNumbers> predicted = predictTraces(*entry.base, traces);
  if (!predicted.empty()) {
    predicted.insert(predicted.end(), traces.begin(), traces.end());
    if (GeneralGraphPtr general = generalize(std::move(predicted), reason))
      return general;
  }
  if (traces.size() < 2) {
    if (reason.empty())
      reason = "the op may accept only the present size";
    return nullptr;
  }
  if (GeneralGraphPtr general = generalize(traces, reason))
    return general;
  predicted = predictBounds(*entry.base, traces);
  if (predicted.empty())
    return nullptr;
  // Limits the number of real traces: if there are too many traces,
  // `generalize` drops the first, which are the predicted ones.
  const size_t numTraces =
      std::min(traces.size(), GeneralGraph::kMaxTraces - predicted.size());
  predicted.insert(predicted.end(), traces.end() - ptrdiff_t(numTraces),
                   traces.end());
  std::string why;
  return generalize(std::move(predicted), why);
}

void SkeletonMemory::add(Entry &entry, GeneralGraphPtr general,
                         std::vector<TraceNumbers> traces) {
  for (const TraceNumbers &trace : traces)
    std::erase(entry.pending, trace);
  auto shared =
      std::make_shared<const std::vector<TraceNumbers>>(std::move(traces));
  entry.known.insert(entry.known.begin(),
                     {std::move(general), std::move(shared)});
  if (entry.known.size() > kMaxGeneralGraphs)
    entry.known.pop_back();
  entry.isApart = false;
}

/// Adds a general graph of the newest one's traces and the pending ones. The
/// newest one stays known in case the other one has no program.
bool SkeletonMemory::extend(Entry &entry, std::string &reason) {
  std::vector<TraceNumbers> traces = *entry.known.front().traces;
  traces.insert(traces.end(), entry.pending.begin(), entry.pending.end());
  if (traces.size() > GeneralGraph::kMaxTraces)
    traces.erase(traces.begin(), traces.end() - GeneralGraph::kMaxTraces);
  GeneralGraphPtr general = makeGeneral(entry, traces, reason);
  entry.isApart = !general;
  if (!general)
    return false;
  add(entry, std::move(general), std::move(traces));
  return true;
}

/// Adds a general graph of the newest and one other recent trace if it also
/// fits a third trace. With only two, traces of different functions could
/// be mistaken for traces of one function.
bool SkeletonMemory::addOfPair(Entry &entry) {
  const std::vector<TraceNumbers> &recent = entry.recent;
  if (recent.size() < 3)
    return false;
  const TraceNumbers newest = recent.back();
  for (size_t i = recent.size() - 1; i-- > 0;) {
    if (entry.pairs++ >= kMaxPairs)
      return false;
    std::string why;
    GeneralGraphPtr general = makeGeneral(entry, {recent[i], newest}, why);
    if (!general)
      continue;
    std::vector<TraceNumbers> fitting;
    for (const TraceNumbers &trace : recent)
      if (general->bind(trace))
        fitting.push_back(trace);
    if (fitting.size() < 3)
      continue;
    if (fitting.size() > GeneralGraph::kMaxTraces)
      fitting.erase(fitting.begin(), fitting.end() - GeneralGraph::kMaxTraces);
    add(entry, std::move(general), std::move(fitting));
    return true;
  }
  return false;
}

bool SkeletonMemory::addOfPending(Entry &entry, std::string &reason) {
  std::vector<TraceNumbers> traces = entry.pending;
  GeneralGraphPtr general = makeGeneral(entry, traces, reason);
  if (!general)
    return false;
  add(entry, std::move(general), std::move(traces));
  return true;
}

// The lock isn't held while a general graph is made: Meta kernels in Python
// wait for the GIL, whose holder may wait for the lock.
void SkeletonMemory::generalize(Sighting &sighting) {
  std::optional<Entry> entry = find(sighting.numbers.skeleton);
  if (!entry || !entry->isChanged || entry->failures >= kMaxFailures ||
      entry->rejected.size() >= kMaxRejected)
    return;
  const bool isEnough =
      entry->pending.size() > 1 || hasDynamicMarks(*entry->base);
  if (!isEnough && entry->known.empty())
    return;
  entry->isChanged = false;
  std::string why;
  bool isMade = !entry->known.empty() && !entry->isApart && extend(*entry, why);
  if (!isMade)
    isMade = addOfPair(*entry);
  if (!isMade && isEnough)
    isMade = addOfPending(*entry, why);
  entry->failures += !isMade;
  if (sighting.reason.empty() || !isMade)
    sighting.reason = why;
  if (isMade) {
    const GeneralGraphPtr &general = entry->known.front().general;
    if (auto values = general->bind(sighting.numbers, &sighting.reason)) {
      sighting.general = general;
      sighting.values = std::move(*values);
    }
  }
  store(*entry);
}

void SkeletonMemory::reject(const GeneralGraph &general) {
  std::optional<Entry> entry = find(general.skeleton());
  if (!entry)
    return;
  const Hash128 hash = general.hash();
  entry->rejected.push_back(hash);
  auto isRejected = [&](const Known &known) {
    return known.general->hash() == hash;
  };
  auto found = std::ranges::find_if(entry->known, isRejected);
  if (found == entry->known.end())
    return store(*entry);
  std::vector<TraceNumbers> traces = *found->traces;
  entry->known.erase(found);
  std::erase_if(traces, [&](const TraceNumbers &numbers) {
    return std::ranges::any_of(entry->known, [&](const Known &known) {
      return known.general->bind(numbers).has_value();
    });
  });
  entry->pending.insert(entry->pending.begin(), traces.begin(), traces.end());
  entry->isApart = true;
  if (entry->pending.size() > GeneralGraph::kMaxTraces)
    entry->pending.erase(entry->pending.begin(),
                         entry->pending.end() - GeneralGraph::kMaxTraces);
  store(*entry);
}

void SkeletonMemory::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  entries.clear();
  bySkeleton.clear();
  numOps = 0;
}
