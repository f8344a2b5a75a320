//===- external_backend.h - Compilers that users bring ----------*- C++ -*-===//
//
// Option `backend` names the compiler of new programs; empty: ours. Others are
// registered at run time (Python: torch_ltc.register_backend) and get the graph
// of each new program, of which they may take any stage.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_EXTERNAL_BACKEND_H
#define TORCH_LTC_COMPILATION_EXTERNAL_BACKEND_H

#include "programs/program.h"

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

namespace torch_ltc {

struct ExternalBackend {
  std::string name;
  /// Ops as "aten.sort" (all overloads) or "aten.sort.stable" that it can't do:
  /// they run eagerly, unless a decomposition removes them anyway.
  std::unordered_set<std::string> unsupportedOps;
  /// Ops it wants whole although we would decompose them.
  std::unordered_set<std::string> legalOps;
  /// Throws std::runtime_error with a sentence.
  std::function<ProgramPtr(GraphSnapshotPtr)> compile;
  /// Set by `registerExternalBackend`: differs between registrations, so that
  /// no program of an earlier one is used.
  uint64_t generation = 0;
};
using ExternalBackendPtr = std::shared_ptr<const ExternalBackend>;

/// Replaces one of the same name.
void registerExternalBackend(ExternalBackend backend);
void removeExternalBackend(const std::string &name);

/// Asked for a name that isn't registered (an installed package may have it);
/// registers it, or throws std::runtime_error with a sentence.
void setBackendFinder(std::function<void(const std::string &name)> finder);

/// The backend that option `backend` selects, null for our own compiler.
/// Throws c10::Error if there is none of that name.
ExternalBackendPtr selectedBackend();

/// Whether the selected backend wants the op ("aten.sort") to run eagerly;
/// remembers the answer's inputs per thread until an option changes.
bool isRefusedByBackend(const char *emitName);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_EXTERNAL_BACKEND_H
