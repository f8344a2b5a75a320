//===- language_lock.h - Sets the functions for the GIL ---------*- C++ -*-===//

#ifndef TORCH_LTC_MEMORY_LANGUAGE_LOCK_H
#define TORCH_LTC_MEMORY_LANGUAGE_LOCK_H

#include "memory/blocking.h"

namespace torch_ltc {

/// Sets `languageLock` to `lock`, which must live as long as the process. The
/// bindings can't set the variable: they are compiled with hidden symbols and
/// would set their own copy.
void setLanguageLock(const LanguageLock &lock);

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_LANGUAGE_LOCK_H
