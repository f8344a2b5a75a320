//===- collective_faults.h - Ranks that differ, are late or end -*- C++ -*-===//
//
// Every collective has a name that its ranks share: its group, its number among
// the group's collectives, and its signature (kind, reduction, root, elements,
// dtype).
//
//   a rank differs   With option check_collectives, ranks exchange signatures
//                    before each collective; if these differ, all ranks raise.
//   a rank is late   A rank that has waited for a second announces the
//                    collective in the job's store. When a collective fails,
//                    the error names the ranks that haven't announced it.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DISTRIBUTED_COLLECTIVE_FAULTS_H
#define TORCH_LTC_DISTRIBUTED_COLLECTIVE_FAULTS_H

#include "distributed/backend_call.h"
#include "distributed/groups.h"
#include "source/source_location.h"

#include <chrono>
#include <functional>
#include <string>

namespace torch_ltc {

/// Records the Python line of the collective with this number. Only the last
/// 4096 lines of each chain of collectives are kept.
void notePlaceOfCollective(int64_t number, LocationId place);
/// The recorded line; 0 if there is none.
LocationId placeOfCollective(int64_t number);

struct CollectiveName {
  ProcessGroupPtr group;
  std::string signature; // "all_reduce(sum) of 1000 Float"
  int64_t number = 0;    // in its group; 0 for a message between two ranks
  LocationId place = 0;
  std::chrono::steady_clock::time_point begin;

  bool isMessage() const { return !number; }
};

/// The name of the collective with this number, which is about to begin.
CollectiveName nameCollective(const BackendCall &call, int64_t number,
                              const at::Tensor &input,
                              const at::Tensor &output);
/// The name of `op`, an untraced collective of CPU tensors that is about to
/// begin.
CollectiveName nameCpuCollective(const std::string &op,
                                 const ProcessGroupPtr &group);

/// With option check_collectives, throws unless all ranks are about to begin
/// the same collective.
void checkRanksAgree(const CollectiveName &name);

/// Runs `begin`. An error names the collective, its Python line and the ranks
/// that are late.
void beginNamed(const CollectiveName &name, const std::function<void()> &begin);
/// Waits for the collective. An error names the collective, its Python line and
/// the ranks that are late.
void waitNamed(const CollectiveName &name, c10d::Work &work);

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_COLLECTIVE_FAULTS_H
