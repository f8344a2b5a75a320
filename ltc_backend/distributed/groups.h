//===- groups.h - Process groups by number ----------------------*- C++ -*-===//
//
// Programs identify a process group by a number: its position among the groups
// that this process has used. Ranks that use their groups in the same order
// have the same programs, whatever the groups' names, and share them in the
// disk cache.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DISTRIBUTED_GROUPS_H
#define TORCH_LTC_DISTRIBUTED_GROUPS_H

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace torch_ltc {

using ProcessGroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;

/// The number of `group`; the number of a destroyed group is reused.
int64_t groupNumber(const ProcessGroupPtr &group);

/// Returns the group; throws c10::Error if it has been destroyed.
ProcessGroupPtr groupOfNumber(int64_t number);

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_GROUPS_H
