//===- language_lock.cpp - Python's lock, for this library ----------------===//

#include "memory/language_lock.h"

void torch_ltc::setLanguageLock(const LanguageLock &lock) {
  languageLock.store(&lock, std::memory_order_release);
}
