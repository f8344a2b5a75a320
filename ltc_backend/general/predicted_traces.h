//===- predicted_traces.h - Predicts traces at other sizes ------*- C++ -*-===//
//
// A general graph is derived from two or more traces. If a size is marked as
// dynamic (torch_ltc.mark_dynamic), the second trace is predicted from the
// first:
//
//   x f32[8, 20], dimension 0 is marked; view(x, 160)
//     at 16 and 24: view(x, 320), view(x, 480)
//
// One trace doesn't show which numbers follow from a size: 160 may be a
// constant. A prediction is a guess, which is safe because each binding is
// checked (`GeneralGraph::bind`); a real trace with a different size replaces
// it.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GENERAL_PREDICTED_TRACES_H
#define TORCH_LTC_GENERAL_PREDICTED_TRACES_H

#include "general/trace_numbers.h"

namespace torch_ltc {

bool hasDynamicMarks(const GraphSnapshot &graph);

/// Predicts the graph's numbers at other sizes of the dimensions that are
/// marked as dynamic, except those whose size already differs between `traces`.
/// Returns an empty vector if nothing is marked or no prediction fits the
/// skeleton.
std::vector<TraceNumbers>
predictTraces(const GraphSnapshot &graph,
              const std::vector<TraceNumbers> &traces);

/// Predicts the numbers as if the sizes that bound slices were marked as
/// dynamic: sizes of parameters that are the same in all traces although slices
/// of varying lengths are read or written along their dimensions. Because such
/// a size is constant, `traces` don't show which other numbers follow from it
/// (for example, the size of a convolution's result).
std::vector<TraceNumbers>
predictBounds(const GraphSnapshot &graph,
              const std::vector<TraceNumbers> &traces);

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_PREDICTED_TRACES_H
