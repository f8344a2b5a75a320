//===- guards.cpp - Forbidden events --------------------------------------===//

#include "events/guards.h"

#include "source/source_location.h"

#include <c10/util/Exception.h>

#include <atomic>

using namespace torch_ltc;

static std::atomic<int> guards[size_t(Forbidden::numKinds)];

static const char *guardName(Forbidden kind) {
  static const char *const names[] = {"no_sync", "no_fallback", "no_recompile"};
  return names[size_t(kind)];
}

void torch_ltc::enterGuard(Forbidden kind) { ++guards[size_t(kind)]; }
void torch_ltc::leaveGuard(Forbidden kind) { --guards[size_t(kind)]; }

bool torch_ltc::isForbidden(Forbidden kind) {
  return guards[size_t(kind)].load(std::memory_order_relaxed) > 0;
}

void torch_ltc::checkAllowed(Forbidden kind, const std::string &sentence) {
  if (isForbidden(kind))
    TORCH_CHECK(false, sentence, messageSuffix(captureLocation()),
                ", which torch_ltc.debug.", guardName(kind),
                "() forbids here.");
}
