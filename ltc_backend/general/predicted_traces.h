//===- predicted_traces.h - Traces at sizes that weren't seen ---*- C++ -*-===//
//
// A general graph is derived from two or more traces. If a size is marked as
// dynamic (torch_ltc.mark_dynamic), the second one is predicted from the first:
//
//   x f32[8, 20], size 0 is marked; view(x, 160)
//     at 16 and 24: view(x, 320), view(x, 480)
//
// One trace doesn't show which numbers follow from a size: 160 may be a
// constant. A prediction is a guess, which is safe because each binding is
// checked (`GeneralGraph::bind`); a real trace of another size takes its place.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GENERAL_PREDICTED_TRACES_H
#define TORCH_LTC_GENERAL_PREDICTED_TRACES_H

#include "general/trace_numbers.h"

namespace torch_ltc {

bool hasDynamicMarks(const GraphSnapshot &graph);

/// Numbers of the graph at other sizes of the dimensions that are marked as
/// dynamic, unless they already differ among the numbers of real traces.
std::vector<TraceNumbers>
predictTraces(const GraphSnapshot &graph,
              const std::vector<TraceNumbers> &traces);

/// Numbers of the graph at other sizes of parameters that are the same in all
/// traces and of which parts of varying lengths are read or written, as if
/// these sizes were marked: one trace doesn't show what else follows from such
/// a size (the size of a convolution's result).
std::vector<TraceNumbers>
predictBounds(const GraphSnapshot &graph,
              const std::vector<TraceNumbers> &traces);

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_PREDICTED_TRACES_H
