//===- cpu_autocast.h - Mixed precision of ops on the CPU -------*- C++ -*-===//

#ifndef TORCH_LTC_FALLBACK_CPU_AUTOCAST_H
#define TORCH_LTC_FALLBACK_CPU_AUTOCAST_H

#include "memory/lazy_device.h"

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

namespace torch_ltc {

/// While an object of this class exists, torch.autocast("lazy") also applies to
/// ops on the CPU. In eager, a composite op (for example, `linalg.pinv`)
/// computes its products in the lower precision; a fallback must do this, too.
class CpuAutocast {
public:
  CpuAutocast() {
    if (c10::impl::tls_is_dispatch_key_excluded(autocastKey) ||
        at::autocast::is_autocast_enabled(at::kCPU))
      return;
    previous = at::autocast::get_autocast_dtype(at::kCPU);
    set(true, at::autocast::get_autocast_dtype(autocastDevice));
  }

  CpuAutocast(const CpuAutocast &) = delete;
  CpuAutocast &operator=(const CpuAutocast &) = delete;

  ~CpuAutocast() {
    if (previous)
      set(false, *previous);
  }

private:
  static void set(bool isEnabled, at::ScalarType dtype) {
    at::autocast::set_autocast_enabled(at::kCPU, isEnabled);
    at::autocast::set_autocast_dtype(at::kCPU, dtype);
  }

  std::optional<at::ScalarType> previous;
};

} // namespace torch_ltc

#endif // TORCH_LTC_FALLBACK_CPU_AUTOCAST_H
