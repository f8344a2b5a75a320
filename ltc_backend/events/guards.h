//===- guards.h - What a part of the program mustn't do ---------*- C++ -*-===//
//
// While a guard is on, the event that it forbids raises instead of happening.
// For the whole process: backward passes run on threads of autograd's.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EVENTS_GUARDS_H
#define TORCH_LTC_EVENTS_GUARDS_H

#include <string>

namespace torch_ltc {

enum class Forbidden { sync, fallback, recompile, numKinds };

/// Guards nest: each entry needs its own end.
void enterGuard(Forbidden kind);
void leaveGuard(Forbidden kind);
bool isForbidden(Forbidden kind);

/// Throws c10::Error with the sentence, the user's line, and the guard's name
/// if the event is forbidden.
void checkAllowed(Forbidden kind, const std::string &sentence);

} // namespace torch_ltc

#endif // TORCH_LTC_EVENTS_GUARDS_H
