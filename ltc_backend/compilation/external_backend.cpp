//===- external_backend.cpp - User-supplied compilers ---------------------===//

#include "compilation/external_backend.h"

#include "config/config.h"

#include <list>
#include <map>
#include <mutex>

using namespace torch_ltc;

namespace {

/// A backend's program for all sizes, or the reason why there is none.
struct GeneralEntry {
  Hash128 key;
  SizeBinder bind;
  std::string reason;
};

struct Backends {
  std::mutex mutex;
  std::map<std::string, ExternalBackendPtr> byName;
  std::function<void(const std::string &)> finder;
  uint64_t generation = 0;
  std::list<GeneralEntry> general; // last compiled first

  ExternalBackendPtr lookup(const std::string &name) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = byName.find(name);
    return found == byName.end() ? nullptr : found->second;
  }
};

Backends &backends() {
  static auto *instance = new Backends;
  return *instance;
}

/// Whether the op isn't decomposed, because our compiler lowers it or the
/// backend declares it legal.
bool isKeptWhole(const ExternalBackend &backend, const std::string &emitName) {
  static const std::unordered_set<std::string> lowered = {
#define LOWERED_OP(Name) Name,
#include "LoweredOps.inc"
#undef LOWERED_OP
  };
  return lowered.contains(emitName) || backend.legalOps.contains(emitName);
}

/// Whether our compiler lowers the op to a call of PyTorch's CPU kernel.
/// External backends don't support such an op unless they declare it legal.
bool isHostOp(const std::string &emitName) {
  static const std::unordered_set<std::string> names = {
#define HOST_OP(Name, ...) Name,
#include "HostOps.inc"
#undef HOST_OP
  };
  return names.contains(emitName);
}

/// "aten.sort.stable" -> "aten.sort"
std::string withoutOverload(const std::string &emitName) {
  size_t first = emitName.find('.');
  size_t second = emitName.find('.', first + 1);
  return emitName.substr(0, second);
}

} // namespace

void torch_ltc::registerExternalBackend(ExternalBackend backend) {
  std::lock_guard<std::mutex> lock(backends().mutex);
  backend.generation = ++backends().generation;
  std::string name = backend.name;
  backends().byName[name] =
      std::make_shared<const ExternalBackend>(std::move(backend));
}

void torch_ltc::removeExternalBackend(const std::string &name) {
  ExternalBackendPtr removed; // destroyed without the lock
  std::lock_guard<std::mutex> lock(backends().mutex);
  auto found = backends().byName.find(name);
  if (found == backends().byName.end())
    return;
  removed = std::move(found->second);
  backends().byName.erase(found);
}

void torch_ltc::setBackendFinder(
    std::function<void(const std::string &)> finder) {
  std::lock_guard<std::mutex> lock(backends().mutex);
  backends().finder = std::move(finder);
}

uint64_t torch_ltc::selectedBackendGeneration() {
  ExternalBackendPtr backend = selectedBackend();
  return backend ? backend->generation : 0;
}

ExternalBackendPtr torch_ltc::selectedBackend() {
  std::string name = config().backend.get();
  if (name.empty())
    return nullptr;
  if (ExternalBackendPtr backend = backends().lookup(name))
    return backend;
  std::function<void(const std::string &)> finder;
  {
    std::lock_guard<std::mutex> lock(backends().mutex);
    finder = backends().finder;
  }
  std::string problem = "no backend of this name is registered";
  if (finder) {
    try {
      finder(name);
    } catch (const std::runtime_error &error) {
      problem = error.what();
    }
  }
  ExternalBackendPtr backend = backends().lookup(name);
  TORCH_CHECK(backend, "Backend '", name, "' (option backend, variable ",
              "TORCH_LTC_BACKEND) can't be used: ", problem);
  return backend;
}

bool torch_ltc::isUnsupportedByBackend(const char *emitName) {
  thread_local uint64_t version = ~0ull;
  thread_local ExternalBackendPtr backend;
  if (version != configVersion()) {
    backend = selectedBackend();
    version = configVersion();
  }
  if (!backend)
    return false;
  std::string name = emitName;
  if (isHostOp(name) && !backend->legalOps.contains(name))
    return true;
  return (backend->unsupportedOps.contains(name) ||
          backend->unsupportedOps.contains(withoutOverload(name))) &&
         isKeptWhole(*backend, name);
}

/// Returns the backend's entry for the general graph; compiles the graph if
/// there is none yet.
static GeneralEntry generalEntry(const ExternalBackend &backend,
                                 const GeneralGraphPtr &general,
                                 bool &isCompiled) {
  HashState state(13);
  state.add(general->hash());
  state.add(backend.generation);
  Hash128 key = state.finish();
  {
    std::lock_guard<std::mutex> lock(backends().mutex);
    for (const GeneralEntry &entry : backends().general)
      if (entry.key == key)
        return entry;
  }
  GeneralEntry entry{.key = key, .bind = {}, .reason = {}};
  entry.bind = backend.compileGeneral(general, entry.reason);
  isCompiled = bool(entry.bind);
  constexpr size_t kMaxEntries = 64;
  std::list<GeneralEntry> removed; // destroyed without the lock
  std::lock_guard<std::mutex> lock(backends().mutex);
  auto &entries = backends().general;
  entries.push_front(entry);
  if (entries.size() > kMaxEntries)
    removed.splice(removed.end(), entries, std::prev(entries.end()));
  return entry;
}

ProgramPtr torch_ltc::bindExternal(const ExternalBackend &backend,
                                   const GraphSnapshotPtr &graph,
                                   Sighting &sighting, bool &isCompiled,
                                   std::string &reason) {
  if (!sighting.general)
    SkeletonMemory::get().generalize(sighting);
  reason = sighting.reason;
  if (!sighting.general)
    return nullptr;
  GeneralEntry entry = generalEntry(backend, sighting.general, isCompiled);
  reason = entry.reason;
  return entry.bind ? entry.bind(graph, sighting, reason) : nullptr;
}
