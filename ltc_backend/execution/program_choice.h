//===- program_choice.h - The program that runs a graph ---------*- C++ -*-===//

#ifndef TORCH_LTC_EXECUTION_PROGRAM_CHOICE_H
#define TORCH_LTC_EXECUTION_PROGRAM_CHOICE_H

#include "graph/graph.h"
#include "programs/program.h"
#include "source/source_location.h"

#include <c10/util/ArrayRef.h>

#include <string>
#include <vector>

namespace torch_ltc {

/// The program that runs a step, and how it was found.
struct ChosenProgram {
  ProgramPtr program;
  /// For each parameter, whether the program may overwrite its buffer.
  std::vector<bool> donatable;
  /// Line that ended the step; 0 if the program was in memory.
  LocationId location = 0;
  /// "memory", "disk", "compiled", "interpreted" or "bound".
  std::string origin = "memory";
};

/// Finds or makes the program of `graph`, which was built from `roots`, and
/// waits for a place in the queue. If `mayDonate`, the program may overwrite
/// buffers that nothing else holds.
///
/// The caller must hold the trace lock, which is released during a compilation
/// and the wait. If another thread accesses one of the buffers to overwrite
/// meanwhile, the program overwrites none.
ChosenProgram chooseProgram(const Graph &graph,
                            c10::ArrayRef<torch::lazy::Value> roots,
                            bool mayDonate);

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_PROGRAM_CHOICE_H
