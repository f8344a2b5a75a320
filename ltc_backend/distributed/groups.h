//===- groups.h - Process groups by number ----------------------*- C++ -*-===//
//
// Programs name a process group by a number: its place among the groups that
// this process has used. Ranks that use their groups in the same order have the
// same programs, whatever the groups are called, and share them on the disk.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DISTRIBUTED_GROUPS_H
#define TORCH_LTC_DISTRIBUTED_GROUPS_H

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace torch_ltc {

using ProcessGroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;

/// The number of `group`; that of a group which is gone is given anew.
int64_t groupNumber(const ProcessGroupPtr &group);

/// Throws if the group has been destroyed.
ProcessGroupPtr groupOfNumber(int64_t number);

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_GROUPS_H
