//===- reported_warnings.h - Warnings that users got already ----*- C++ -*-===//

#ifndef TORCH_LTC_EVENTS_REPORTED_WARNINGS_H
#define TORCH_LTC_EVENTS_REPORTED_WARNINGS_H

#include <c10/util/Exception.h>

#include <optional>

namespace torch_ltc {

/// Notes that the user got this warning when an op was called.
void noteReported(const c10::Warning &warning);

/// While such an object exists, kernels in this thread don't repeat the
/// warnings that the user got when the kernels' ops were called. A worker
/// thread would print them, because it runs no Python code.
class ReportedWarningsGuard {
public:
  ReportedWarningsGuard();

private:
  class Unreported final : public c10::WarningHandler {
  public:
    void process(const c10::Warning &warning) override;
    c10::WarningHandler *outer = nullptr;
  };

  Unreported handler;
  std::optional<c10::WarningUtils::WarningHandlerGuard> guard;
};

} // namespace torch_ltc

#endif // TORCH_LTC_EVENTS_REPORTED_WARNINGS_H
