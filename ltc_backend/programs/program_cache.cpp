//===- program_cache.cpp - Loaded programs by hash ------------------------===//

#include "programs/program_cache.h"

#include "config/config.h"
#include "general/skeleton_memory.h"
#include "memory/blocking.h"

#include <algorithm>
#include <array>
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

/// Programs of one kind, most recently used first. A kind has its own limit, so
/// that the many programs of a loop whose sizes change in each step don't
/// replace compiled ones.
struct Group {
  std::list<Entry> entries;
  size_t weight = 0; // of all entries
};

enum Kind { placeholder, bound, compiled, numKinds };

Kind kindOf(const Program &program) {
  return program.isPlaceholder() ? placeholder
         : program.isBound       ? bound
                                 : compiled;
}

/// The share of the limit that a program takes.
size_t weightOf(const Program &program) {
  return kindOf(program) == compiled ? 1 : program.numOps;
}

size_t limitOf(Kind kind) {
  if (kind == compiled)
    return size_t(std::max<int64_t>(1, config().max_loaded_programs.get()));
  return kind == placeholder ? kMaxPlaceholderOps : kMaxBoundOps;
}

struct Cache {
  std::mutex mutex;
  std::array<Group, numKinds> groups;
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
    const ProgramPtr &program = found->second->program;
    std::list<Entry> &entries = groups[kindOf(*program)].entries;
    entries.splice(entries.begin(), entries, found->second);
    return program;
  }

  void insert(const Hash128 &hash, ProgramPtr program) {
    std::lock_guard<std::mutex> lock(mutex);
    const Kind kind = kindOf(*program);
    Group &group = groups[kind];
    group.weight += weightOf(*program);
    group.entries.push_front({hash, std::move(program)});
    byHash[hash] = group.entries.begin();
    dropOldest(kind);
  }

  /// Replaces a program by one of another kind.
  void replace(std::list<Entry>::iterator entry, const ProgramPtr &program) {
    const Kind kind = kindOf(*program);
    Group &from = groups[kindOf(*entry->program)], &to = groups[kind];
    from.weight -= weightOf(*entry->program);
    to.weight += weightOf(*program);
    entry->program = program;
    to.entries.splice(to.entries.begin(), from.entries, entry);
    dropOldest(kind);
  }

  void dropOldest(Kind kind) {
    Group &group = groups[kind];
    while (group.weight > limitOf(kind) && group.entries.size() > 1) {
      group.weight -= weightOf(*group.entries.back().program);
      byHash.erase(group.entries.back().hash);
      group.entries.pop_back();
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
  auto isReplaced = [&](const ProgramPtr &place) {
    return place->isPlaceholder() && place->name == name;
  };
  std::lock_guard<std::mutex> lock(cache().mutex);
  for (RecentProgram &recent : cache().recent)
    if (isReplaced(recent.program))
      replaced.push_back(std::exchange(recent.program, program));
  auto found = cache().byHash.find(hash);
  if (found == cache().byHash.end() || !isReplaced(found->second->program))
    return;
  replaced.push_back(found->second->program);
  cache().replace(found->second, program);
}

std::vector<ProgramPtr> torch_ltc::loadedPrograms() {
  std::lock_guard<std::mutex> lock(cache().mutex);
  std::vector<ProgramPtr> programs;
  for (const Group &group : cache().groups)
    for (const Entry &entry : group.entries)
      programs.push_back(entry.program);
  return programs;
}

void torch_ltc::clearPrograms() {
  SkeletonMemory::get().clear();
  std::lock_guard<std::mutex> lock(cache().mutex);
  cache().byHash.clear();
  cache().groups = {};
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
