//===- language_lock.h - Python's lock, for this library --------*- C++ -*-===//

#ifndef TORCH_LTC_MEMORY_LANGUAGE_LOCK_H
#define TORCH_LTC_MEMORY_LANGUAGE_LOCK_H

#include "memory/blocking.h"

namespace torch_ltc {

/// `lock` must live as long as the process. A function instead of a variable,
/// because the bindings are compiled with hidden symbols and would set their
/// own copy.
void setLanguageLock(const LanguageLock &lock);

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_LANGUAGE_LOCK_H
