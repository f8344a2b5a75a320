//===- other_devices.h - Tensors like lazy ones on other devices -*- C++
//-*-===//

#ifndef TORCH_LTC_EAGER_SEMANTICS_OTHER_DEVICES_H
#define TORCH_LTC_EAGER_SEMANTICS_OTHER_DEVICES_H

#include "tracing/boxed_kernels.h"

namespace torch_ltc {

/// Wraps the kernels at Functionalize.
void registerOtherDevices(const AtenOps &ops);

} // namespace torch_ltc

#endif // TORCH_LTC_EAGER_SEMANTICS_OTHER_DEVICES_H
