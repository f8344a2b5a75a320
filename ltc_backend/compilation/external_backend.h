//===- external_backend.h - User-supplied compilers -------------*- C++ -*-===//
//
// Option `backend` names the compiler of new programs; "" selects ours.
// External backends are registered at run time (Python:
// torch_ltc.register_backend) and receive the graph of each new program, at the
// stage that they request.
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

/// Binds a program for all sizes to a graph, whose sizes `sighting` describes.
/// Returns null, with the reason, if the program isn't valid for these sizes.
using SizeBinder = std::function<ProgramPtr(
    const GraphSnapshotPtr &, const Sighting &sighting, std::string &reason)>;

struct ExternalBackend {
  std::string name;
  /// Names of ops that the backend doesn't support: "aten.sort" (all overloads)
  /// or "aten.sort.stable". These ops run eagerly, unless they are decomposed.
  std::unordered_set<std::string> unsupportedOps;
  /// Ops that must not be decomposed, although our own compiler decomposes
  /// them.
  std::unordered_set<std::string> legalOps;
  /// Compiles a graph; throws std::runtime_error with a one-sentence message.
  std::function<ProgramPtr(GraphSnapshotPtr)> compile;
  /// Compiles a program for all sizes; returns an empty binder, with the
  /// reason, if the graph has no such program. This function is empty if the
  /// backend only compiles programs for fixed sizes.
  std::function<SizeBinder(const GeneralGraphPtr &, std::string &reason)>
      compileGeneral;
  /// Set by `registerExternalBackend`: differs between registrations, so that
  /// programs of earlier ones aren't used.
  uint64_t generation = 0;
};
using ExternalBackendPtr = std::shared_ptr<const ExternalBackend>;

/// Registers the backend, and removes an earlier one with the same name.
void registerExternalBackend(ExternalBackend backend);
void removeExternalBackend(const std::string &name);

/// Sets the function that is called with the name of a backend that isn't
/// registered. It registers the backend, which an installed package may
/// provide, or throws std::runtime_error with a one-sentence message.
void setBackendFinder(std::function<void(const std::string &name)> finder);

/// The backend that option `backend` selects, null for our own compiler. Throws
/// c10::Error if there is no backend with that name.
ExternalBackendPtr selectedBackend();

/// The generation of the selected backend; 0 for our own compiler.
uint64_t selectedBackendGeneration();

/// Binds the backend's program for all sizes to the graph. If there is no such
/// program yet and enough graphs of the skeleton are known, first compiles one
/// and sets `isCompiled`. Returns null if the graph must be compiled for its
/// sizes; `reason` then says why, or is empty.
ProgramPtr bindExternal(const ExternalBackend &backend,
                        const GraphSnapshotPtr &graph, Sighting &sighting,
                        bool &isCompiled, std::string &reason);

/// Whether the selected backend declared the op ("aten.sort") unsupported;
/// caches the backend per thread until an option changes.
bool isUnsupportedByBackend(const char *emitName);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_EXTERNAL_BACKEND_H
