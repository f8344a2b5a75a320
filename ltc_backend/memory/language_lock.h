//===- language_lock.h - Python's lock, for this library --------*- C++ -*-===//

#ifndef TORCH_LTC_MEMORY_LANGUAGE_LOCK_H
#define TORCH_LTC_MEMORY_LANGUAGE_LOCK_H

#include "memory/blocking.h"

namespace torch_ltc {

/// `lock` lives as long as the process. A function, since the bindings, which
/// are compiled with hidden symbols, would set a variable of their own.
void setLanguageLock(const LanguageLock &lock);

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_LANGUAGE_LOCK_H
