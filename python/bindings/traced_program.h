//===- traced_program.h - A traced program for Python -----------*- C++ -*-===//

#ifndef TORCH_LTC_PYTHON_TRACED_PROGRAM_H
#define TORCH_LTC_PYTHON_TRACED_PROGRAM_H

#include "general/general_graph.h"
#include "graph/graph.h"

namespace torch_ltc {

/// `torch_ltc._C.TracedProgram`: a graph, to be lowered to any stage, and the
/// values with which it was traced, if they are known.
struct TracedProgram {
  GraphSnapshotPtr graph;
  /// The values of the graph's parameters. Empty if they aren't known: for
  /// example, a backend's program receives the values when it runs.
  std::vector<HostDataPtr> parameters;
  std::vector<DynamicScalar> scalars;
  /// The position of each requested tensor among the outputs.
  std::vector<uint32_t> resultOfTensor = {};
};

/// `torch_ltc._C.GeneralGraph`.
struct GeneralProgram {
  GeneralGraphPtr graph;
};

/// The name of a dtype in Python, such as "float32".
std::string pythonDType(c10::ScalarType type);

} // namespace torch_ltc

#endif // TORCH_LTC_PYTHON_TRACED_PROGRAM_H
