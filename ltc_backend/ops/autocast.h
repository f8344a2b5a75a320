//===- autocast.h - Mixed precision: torch.autocast("lazy") -----*- C++ -*-===//

#ifndef TORCH_LTC_OPS_AUTOCAST_H
#define TORCH_LTC_OPS_AUTOCAST_H

namespace torch_ltc {

/// Registers the kernels; called before a thread enables autocast.
void prepareAutocast();

/// Clears the cache of parameter casts at the end of an autocast region.
void clearAutocastCache();

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_AUTOCAST_H
