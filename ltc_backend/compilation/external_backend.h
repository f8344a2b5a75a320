//===- external_backend.h - User-supplied compilers -------------*- C++ -*-===//
//
// Option `backend` names the compiler of new programs; empty: ours. Others are
// registered at run time (Python: torch_ltc.register_backend) and receive the
// graph of each new program at any stage.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_EXTERNAL_BACKEND_H
#define TORCH_LTC_COMPILATION_EXTERNAL_BACKEND_H

#include "general/skeleton_memory.h"
#include "programs/program.h"

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

namespace torch_ltc {

/// The program of a graph that `sighting` fits, by a program for all sizes;
/// null with the reason if that one isn't valid for these sizes.
using SizeBinder = std::function<ProgramPtr(
    const GraphSnapshotPtr &, const Sighting &sighting, std::string &reason)>;

struct ExternalBackend {
  std::string name;
  /// Ops that it doesn't support, as "aten.sort" (all overloads) or
  /// "aten.sort.stable": they run eagerly, unless a decomposition removes them
  /// anyway.
  std::unordered_set<std::string> unsupportedOps;
  /// Ops that must not be decomposed although we decompose them.
  std::unordered_set<std::string> legalOps;
  /// Throws std::runtime_error with a one-sentence message.
  std::function<ProgramPtr(GraphSnapshotPtr)> compile;
  /// Compiles a program for all sizes. Empty if the backend gets one of each
  /// size; the result is empty, with the reason, if the graph has no such form.
  std::function<SizeBinder(const GeneralGraphPtr &, std::string &reason)>
      compileGeneral;
  /// Set by `registerExternalBackend`: differs between registrations, so that
  /// programs of an earlier one aren't used.
  uint64_t generation = 0;
};
using ExternalBackendPtr = std::shared_ptr<const ExternalBackend>;

/// Replaces a backend with the same name.
void registerExternalBackend(ExternalBackend backend);
void removeExternalBackend(const std::string &name);

/// Called with a name that isn't registered (an installed package may provide
/// it); registers it, or throws std::runtime_error with a one-sentence message.
void setBackendFinder(std::function<void(const std::string &name)> finder);

/// The backend that option `backend` selects, null for our own compiler. Throws
/// c10::Error if there is no backend with that name.
ExternalBackendPtr selectedBackend();

/// Its generation; 0 for our own compiler.
uint64_t selectedBackendGeneration();

/// The program of a graph at its sizes, by the backend's program for all sizes
/// of its skeleton, which is compiled at the second sight. Null, with the
/// reason if there is one, if the graph needs a program of its own.
ProgramPtr bindExternal(const ExternalBackend &backend,
                        const GraphSnapshotPtr &graph, Sighting &sighting,
                        bool &isCompiled, std::string &reason);

/// Whether the selected backend wants the op ("aten.sort") to run eagerly;
/// caches the backend per thread until an option changes.
bool isRefusedByBackend(const char *emitName);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_EXTERNAL_BACKEND_H
