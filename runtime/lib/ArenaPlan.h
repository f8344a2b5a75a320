//===- ArenaPlan.h - Offsets of a binding's buffers -----------------------===//

#ifndef TORCH_LTC_RUNTIME_ARENAPLAN_H
#define TORCH_LTC_RUNTIME_ARENAPLAN_H

#include "executable.pb.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace torch_ltc::runtime {

/// First and last command that uses each buffer; {0, -1}: none.
struct Lifetime {
  int first = 0, last = -1;
};
llvm::SmallVector<Lifetime> findLifetimes(Executable &executable);

/// Places the arena's buffers for their current sizes, so that buffers that are
/// used at the same time don't overlap.
void planArena(Executable &executable, llvm::ArrayRef<Lifetime> lifetimes);

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_ARENAPLAN_H
