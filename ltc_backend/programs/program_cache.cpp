//===- program_cache.cpp - Loaded programs by hash ------------------------===//

#include "programs/program_cache.h"

#include "config/config.h"
#include "general/skeleton_memory.h"
#include "memory/blocking.h"

#include <algorithm>
#include <deque>
#include <list>
#include <unordered_map>

using namespace torch_ltc;

namespace {

/// Maximum total number of ops of the programs that aren't compiled yet; an op
/// takes half a kilobyte.
constexpr size_t kMaxPlaceholderOps = 50000;

/// Maximum total number of ops of the programs that are bound to sizes. Binding
/// takes less than a millisecond; an op takes up to four kilobytes.
constexpr size_t kMaxBoundOps = 9000;

struct Entry {
  Hash128 hash;
  ProgramPtr program;
};

struct Cache {
  std::mutex mutex;
  std::list<Entry> entries; // most recently used first
  std::unordered_map<Hash128, std::list<Entry>::iterator, Hash128Hasher> byHash;
  std::deque<RecentProgram> recent; // newest last
  // Compilation is serialized: two threads that train the same model need the
  // same new program at the same time.
  std::timed_mutex making;

  ProgramPtr lookup(const Hash128 &hash) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = byHash.find(hash);
    if (found == byHash.end())
      return nullptr;
    entries.splice(entries.begin(), entries, found->second);
    return found->second->program;
  }

  void insert(const Hash128 &hash, ProgramPtr program) {
    std::lock_guard<std::mutex> lock(mutex);
    entries.push_front({hash, std::move(program)});
    byHash[hash] = entries.begin();
    size_t limit =
        size_t(std::max<int64_t>(1, config().max_loaded_programs.get()));
    while (entries.size() > limit)
      drop(std::prev(entries.end()));
    dropOps(kMaxPlaceholderOps,
            [](const Program &program) { return program.isPlaceholder(); });
    dropOps(kMaxBoundOps,
            [](const Program &program) { return program.isBound; });
  }

  void drop(std::list<Entry>::iterator entry) {
    byHash.erase(entry->hash);
    entries.erase(entry);
  }

  /// Drops the least recently used programs of a kind while those in the cache
  /// have more than `maxOps` ops in total. A loop whose sizes change in each
  /// step makes many such programs.
  void dropOps(size_t maxOps, bool (*isOfKind)(const Program &)) {
    size_t numOps = 0;
    for (auto entry = entries.begin(); entry != entries.end();) {
      auto next = std::next(entry);
      if (isOfKind(*entry->program)) {
        numOps += entry->program->numOps;
        if (numOps > maxOps && entry != entries.begin())
          drop(entry);
      }
      entry = next;
    }
  }
};

Cache &cache() {
  static auto *instance = new Cache;
  return *instance;
}

} // namespace

ProgramPtr torch_ltc::findProgram(const Hash128 &hash) {
  return cache().lookup(hash);
}

ProgramPtr torch_ltc::findOrMakeProgram(const Hash128 &hash,
                                        const std::function<ProgramPtr()> &make,
                                        bool &wasInMemory) {
  wasInMemory = true;
  if (ProgramPtr program = cache().lookup(hash))
    return program;
  BlockingScope unlocked;
  std::unique_lock<std::timed_mutex> lock(cache().making, std::defer_lock);
  lockOrInterrupt(lock);
  if (ProgramPtr program = cache().lookup(hash))
    return program;
  wasInMemory = false;
  ProgramPtr program = make();
  cache().insert(hash, program);
  return program;
}

void torch_ltc::replacePlaceholder(const Hash128 &hash, const std::string &name,
                                   const ProgramPtr &program) {
  // Replaced programs are destroyed after the lock is released.
  std::vector<ProgramPtr> replaced;
  auto replace = [&](ProgramPtr &place) {
    if (place->isPlaceholder() && place->name == name)
      replaced.push_back(std::exchange(place, program));
  };
  std::lock_guard<std::mutex> lock(cache().mutex);
  for (RecentProgram &recent : cache().recent)
    replace(recent.program);
  auto found = cache().byHash.find(hash);
  if (found != cache().byHash.end())
    replace(found->second->program);
}

std::vector<ProgramPtr> torch_ltc::loadedPrograms() {
  std::lock_guard<std::mutex> lock(cache().mutex);
  std::vector<ProgramPtr> programs;
  for (const Entry &entry : cache().entries)
    programs.push_back(entry.program);
  return programs;
}

void torch_ltc::clearPrograms() {
  SkeletonMemory::get().clear();
  std::lock_guard<std::mutex> lock(cache().mutex);
  cache().byHash.clear();
  cache().entries.clear();
  cache().recent.clear();
}

void torch_ltc::addRecentProgram(RecentProgram program) {
  std::lock_guard<std::mutex> lock(cache().mutex);
  cache().recent.push_back(std::move(program));
  while (cache().recent.size() >
         size_t(config().max_inspectable_programs.get()))
    cache().recent.pop_front();
}

RecentProgram torch_ltc::recentProgram(const std::string &name) {
  std::lock_guard<std::mutex> lock(cache().mutex);
  for (const RecentProgram &program : cache().recent)
    if (program.graph->name == name)
      return program;
  TORCH_CHECK(false, "Program ", name, " isn't among the last ",
              config().max_inspectable_programs.get(),
              " programs that were made (option max_inspectable_programs).");
}

std::vector<GraphSnapshotPtr> torch_ltc::recentGraphs() {
  std::vector<GraphSnapshotPtr> graphs;
  std::lock_guard<std::mutex> lock(cache().mutex);
  for (const RecentProgram &program : cache().recent)
    graphs.push_back(program.graph);
  return graphs;
}
