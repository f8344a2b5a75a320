//===- traced_place.h - Source of a traced op -------------------*- C++ -*-===//

#ifndef TORCH_LTC_SOURCE_TRACED_PLACE_H
#define TORCH_LTC_SOURCE_TRACED_PLACE_H

#include "source/source_location.h"

namespace torch_ltc {

struct TracedPlace {
  LocationId location = 0;
  ModulePathId module = 0;
};

/// Returns the Python line and module of the op that is being traced. While
/// autograd runs backward, returns the line and module of the forward op whose
/// gradient is being computed.
TracedPlace tracedPlace();

} // namespace torch_ltc

#endif // TORCH_LTC_SOURCE_TRACED_PLACE_H
