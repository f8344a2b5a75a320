//===- traced_place.h - Where an op comes from ------------------*- C++ -*-===//

#ifndef TORCH_LTC_SOURCE_TRACED_PLACE_H
#define TORCH_LTC_SOURCE_TRACED_PLACE_H

#include "source/source_location.h"

namespace torch_ltc {

struct TracedPlace {
  LocationId location = 0;
  ModulePathId module = 0;
};

/// Of the op that is traced now; while autograd runs backward, of the forward
/// op whose gradient it is a part of.
TracedPlace tracedPlace();

} // namespace torch_ltc

#endif // TORCH_LTC_SOURCE_TRACED_PLACE_H
