//===- reported_warnings.cpp - Warnings that users got already ------------===//

#include "events/reported_warnings.h"

#include <atomic>
#include <mutex>
#include <set>
#include <string>

using namespace torch_ltc;

namespace {

struct ReportedWarnings {
  std::mutex mutex;
  std::set<std::string> texts;
  /// Whether there are texts; read without the mutex.
  std::atomic<bool> hasAny{false};
};

ReportedWarnings &reported() {
  static auto *const warnings = new ReportedWarnings;
  return *warnings;
}

} // namespace

void torch_ltc::noteReported(const c10::Warning &warning) {
  constexpr size_t maxTexts = 1000; // texts may contain numbers that vary
  ReportedWarnings &warnings = reported();
  std::lock_guard<std::mutex> lock(warnings.mutex);
  if (warnings.texts.size() < maxTexts)
    warnings.texts.insert(warning.msg());
  warnings.hasAny = true;
}

ReportedWarningsGuard::ReportedWarningsGuard() {
  if (!reported().hasAny)
    return;
  handler.outer = c10::WarningUtils::get_warning_handler();
  guard.emplace(&handler);
}

void ReportedWarningsGuard::Unreported::process(const c10::Warning &warning) {
  ReportedWarnings &warnings = reported();
  {
    std::lock_guard<std::mutex> lock(warnings.mutex);
    if (warnings.texts.contains(warning.msg()))
      return;
  }
  outer->process(warning);
}
