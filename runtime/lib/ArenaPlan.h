//===- ArenaPlan.h - Arena offsets of a bound executable --------*- C++ -*-===//

#ifndef TORCH_LTC_RUNTIME_ARENAPLAN_H
#define TORCH_LTC_RUNTIME_ARENAPLAN_H

#include "executable.pb.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace torch_ltc::runtime {

/// The first and the last command that use a buffer; {0, -1} if none does.
struct Lifetime {
  int first = 0, last = -1;
};
/// Returns the lifetime of each buffer.
llvm::SmallVector<Lifetime> findLifetimes(Executable &executable);

/// Sets the arena offsets of the buffers, for their current sizes, and the size
/// of the arena. Buffers that are used at the same time don't overlap.
void planArena(Executable &executable, llvm::ArrayRef<Lifetime> lifetimes);

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_ARENAPLAN_H
