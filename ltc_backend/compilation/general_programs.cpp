//===- general_programs.cpp - One executable for all sizes ----------------===//

#include "compilation/general_programs.h"

#include "compilation/placeholder_program.h"
#include "config/config.h"

#include <algorithm>

using namespace torch_ltc;

GeneralSamples::GeneralSamples(GeneralGraphPtr graph)
    : general(std::move(graph)) {
  for (const SymbolValues &values : general->standIns()) {
    graphs.push_back(general->instantiate(values, general->hash().text()));
    numbers.push_back(numbersOf(graphs.back()));
    checked.push_back(numbers.back().all());
  }
}

struct GeneralPrograms::Entry {
  std::mutex mutex;
  State state = State::Unknown;
  GeneralGraphPtr general; // set in state Ready
  LtcExecutable executable = nullptr;

  ~Entry() {
    if (executable)
      ltcExecutableDestroy(executable);
  }
};

GeneralPrograms &GeneralPrograms::get() {
  // Never destroyed: the background thread may use it until the process ends.
  static auto *programs = new GeneralPrograms;
  return *programs;
}

Hash128 GeneralPrograms::hashOf(const GeneralGraph &general) {
  HashState state(12);
  state.add(general.hash());
  state.add(programOptionsHash());
  return state.finish();
}

/// Returns the value for `hash`, made by `make` if there is none, and marks it
/// as the most recently used one. Removes the least recently used value if
/// there would be more than `maxSize`.
template <typename List, typename Make>
static auto &lookUp(List &recent, const Hash128 &hash, size_t maxSize,
                    Make make) {
  auto found = std::ranges::find(recent, hash, [](auto &e) { return e.first; });
  if (found == recent.end()) {
    recent.emplace_front(hash, make());
    if (recent.size() > maxSize)
      recent.pop_back();
  } else {
    recent.splice(recent.begin(), recent, found);
  }
  return recent.front().second;
}

std::shared_ptr<GeneralPrograms::Entry>
GeneralPrograms::entryOf(const GeneralGraph &general) {
  std::lock_guard lock(mutex);
  return lookUp(entries, hashOf(general), /*maxSize=*/64,
                [] { return std::make_shared<Entry>(); });
}

bool GeneralPrograms::begin(const GeneralGraph &general) {
  auto entry = entryOf(general);
  std::lock_guard lock(entry->mutex);
  if (entry->state != State::Unknown)
    return false;
  entry->state = State::Pending;
  return true;
}

void GeneralPrograms::store(const GeneralGraph &general, const char *data,
                            size_t size) {
  LtcExecutable executable = nullptr;
  throwIfFailed(ltcExecutableLoad(data, size, &executable));
  auto entry = entryOf(general);
  std::lock_guard lock(entry->mutex);
  if (entry->executable)
    ltcExecutableDestroy(entry->executable);
  entry->executable = executable;
  entry->general = general.shared_from_this();
  entry->state = State::Ready;
}

GeneralGraphPtr GeneralPrograms::find(const std::string &name) {
  std::shared_ptr<Entry> found;
  {
    std::lock_guard lock(mutex);
    for (auto &[hash, entry] : entries)
      if (hash.text() == name)
        found = entry;
  }
  if (!found)
    return nullptr;
  std::lock_guard lock(found->mutex);
  return found->general;
}

void GeneralPrograms::fail(const GeneralGraph &general) {
  auto entry = entryOf(general);
  std::lock_guard lock(entry->mutex);
  entry->state = State::Impossible;
}

void GeneralPrograms::abandon(const GeneralGraph &general) {
  auto entry = entryOf(general);
  std::lock_guard lock(entry->mutex);
  entry->state = State::Unknown;
}

ProgramPtr GeneralPrograms::bind(const GraphSnapshotPtr &graph,
                                 const Sighting &sighting,
                                 std::string &reason) {
  LtcExecutable bound = bind(sighting, reason);
  return bound ? std::make_shared<CompiledProgram>(graph, bound) : nullptr;
}

LtcExecutable GeneralPrograms::bind(const Sighting &sighting,
                                    std::string &reason) {
  auto entry = entryOf(*sighting.general);
  std::lock_guard lock(entry->mutex);
  if (entry->state != State::Ready)
    return nullptr;
  const std::vector<int64_t> checked = sighting.numbers.all();
  LtcSizes sizes{sighting.values.data(), sighting.values.size(), checked.data(),
                 checked.size()};
  LtcExecutable bound = nullptr;
  try {
    throwIfFailed(ltcExecutableBind(entry->executable, &sizes, &bound));
    return bound;
  } catch (const std::runtime_error &error) {
    reason = error.what();
    return nullptr;
  }
}

bool GeneralPrograms::isReady(const Hash128 &skeleton) {
  std::vector<std::shared_ptr<Entry>> all;
  {
    std::lock_guard lock(mutex);
    for (auto &[hash, entry] : entries)
      all.push_back(entry);
  }
  return std::ranges::any_of(all, [&](const auto &entry) {
    std::lock_guard lock(entry->mutex);
    return entry->state == State::Ready &&
           entry->general->skeleton() == skeleton;
  });
}

GeneralPrograms::Use &GeneralPrograms::useOf(const Hash128 &skeleton) {
  return lookUp(uses, skeleton, /*maxSize=*/256, [] { return Use(); });
}

double
GeneralPrograms::noteNew(const Hash128 &skeleton,
                         const std::shared_ptr<PlaceholderProgram> &next) {
  std::lock_guard lock(mutex);
  Use &use = useOf(skeleton);
  if (auto last = use.last.lock())
    use.seconds += last->takeSeconds();
  use.last = next;
  return use.seconds;
}

double GeneralPrograms::noteRuns(const Hash128 &skeleton,
                                 PlaceholderProgram &program) {
  std::lock_guard lock(mutex);
  return useOf(skeleton).seconds += program.takeSeconds();
}

void GeneralPrograms::startAgain(const Hash128 &skeleton) {
  std::lock_guard lock(mutex);
  useOf(skeleton).seconds = 0;
}

bool GeneralPrograms::isBeingMade(const Hash128 &skeleton) {
  std::lock_guard lock(mutex);
  return useOf(skeleton).isBeingMade;
}

void GeneralPrograms::setBeingMade(const Hash128 &skeleton, bool isBeingMade) {
  std::lock_guard lock(mutex);
  useOf(skeleton).isBeingMade = isBeingMade;
}

void GeneralPrograms::clear() {
  std::lock_guard lock(mutex);
  entries.clear();
  uses.clear();
}
