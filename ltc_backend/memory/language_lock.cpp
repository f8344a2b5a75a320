//===- language_lock.cpp - Sets the functions for the GIL -----------------===//

#include "memory/language_lock.h"

void torch_ltc::setLanguageLock(const LanguageLock &lock) {
  languageLock.store(&lock, std::memory_order_release);
}
