//===- guards.h - Forbidden events ------------------------------*- C++ -*-===//
//
// While a guard is on, the event that it forbids raises an error instead.
// Guards apply to the whole process, because backward passes run on autograd's
// threads.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EVENTS_GUARDS_H
#define TORCH_LTC_EVENTS_GUARDS_H

#include <string>

namespace torch_ltc {

enum class Forbidden { sync, fallback, recompile, numKinds };

/// Guards nest: each `enterGuard` needs a `leaveGuard`.
void enterGuard(Forbidden kind);
void leaveGuard(Forbidden kind);
bool isForbidden(Forbidden kind);

/// If the event is forbidden, throws c10::Error with the sentence, the user's
/// line and the guard's name.
void checkAllowed(Forbidden kind, const std::string &sentence);

} // namespace torch_ltc

#endif // TORCH_LTC_EVENTS_GUARDS_H
