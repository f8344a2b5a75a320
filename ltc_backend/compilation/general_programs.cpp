//===- general_programs.cpp - One executable for all sizes ----------------===//

#include "compilation/general_programs.h"

#include "config/config.h"
#include "programs/interpreted_program.h"

#include <algorithm>

using namespace torch_ltc;

GeneralSamples::GeneralSamples(GeneralGraphPtr graph)
    : general(std::move(graph)) {
  for (const SymbolValues &values : general->standIns()) {
    graphs.push_back(general->instantiate(values, general->hash().text()));
    numbers.push_back(numbersOf(graphs.back()));
  }
}

struct GeneralPrograms::Entry {
  std::mutex mutex;
  State state = State::Unknown;
  LtcExecutable executable = nullptr;
  double interpretedSeconds = 0;
  std::weak_ptr<InterpretedProgram> interpreted;

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

std::shared_ptr<GeneralPrograms::Entry>
GeneralPrograms::entryOf(const GeneralGraph &general) {
  constexpr size_t mostEntries = 64;
  Hash128 hash = hashOf(general);
  std::lock_guard lock(mutex);
  auto found =
      std::ranges::find(entries, hash, [](auto &e) { return e.first; });
  if (found == entries.end()) {
    entries.emplace_front(hash, std::make_shared<Entry>());
    if (entries.size() > mostEntries)
      entries.pop_back();
  } else {
    entries.splice(entries.begin(), entries, found);
  }
  return entries.front().second;
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
  entry->state = State::Ready;
}

void GeneralPrograms::fail(const GeneralGraph &general) {
  auto entry = entryOf(general);
  std::lock_guard lock(entry->mutex);
  entry->state = State::Impossible;
}

ProgramPtr GeneralPrograms::bind(const GraphSnapshotPtr &graph,
                                 const Sighting &sighting,
                                 std::string &reason) {
  auto entry = entryOf(*sighting.general);
  std::lock_guard lock(entry->mutex);
  if (entry->state != State::Ready)
    return nullptr;
  const std::vector<int64_t> &checked = sighting.numbers.sizes;
  LtcSizes sizes{sighting.values.data(), sighting.values.size(), checked.data(),
                 checked.size()};
  LtcExecutable bound = nullptr;
  try {
    throwIfFailed(ltcExecutableBind(entry->executable, &sizes, &bound));
    return std::make_shared<CompiledProgram>(graph, bound);
  } catch (const std::runtime_error &error) {
    reason = error.what();
    return nullptr;
  }
}

double GeneralPrograms::noteInterpreted(
    const GeneralGraph &general,
    const std::shared_ptr<InterpretedProgram> &next) {
  auto entry = entryOf(general);
  std::lock_guard lock(entry->mutex);
  if (auto last = entry->interpreted.lock())
    entry->interpretedSeconds += last->seconds();
  entry->interpreted = next;
  return entry->interpretedSeconds;
}

void GeneralPrograms::clear() {
  std::lock_guard lock(mutex);
  entries.clear();
}
