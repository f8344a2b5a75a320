//===- dump.h - A compiled program as files ---------------------*- C++ -*-===//

#ifndef TORCH_LTC_COMPILATION_DUMP_H
#define TORCH_LTC_COMPILATION_DUMP_H

#include "events/step_log.h"
#include "programs/program.h"

#include <string>
#include <utility>
#include <vector>

namespace torch_ltc {

/// Stage names and texts, in the order of the stages.
using StageTexts = std::vector<std::pair<std::string, std::string>>;

/// Writes one folder for the program: ir.txt, graph.dot, a file for each stage,
/// tensors.txt and summary.txt. Returns the folder. If it can't be written,
/// logs a warning and returns "".
std::string dumpProgram(const std::string &folder, const GraphSnapshot &graph,
                        const Program &program, const StageTexts &texts,
                        const CompileEvent &event);

/// The folder below `folder` with a complete dump of program `name` (a hash),
/// written by this process or an earlier one; "" if there is none. Remembers
/// the folder, so that later calls only check that the dump still exists.
std::string findDump(const std::string &folder, const std::string &name);
/// Whether this process failed to write a dump of program `name` to `folder`.
/// The failure is reported once, and writing isn't retried.
bool hasDumpFailed(const std::string &folder, const std::string &name);

/// Writes the graph's inputs to inputs.pt in `folder`, unless the file exists.
/// Waits until the inputs are computed.
void saveInputs(const std::string &folder, const Graph &graph);

/// Appends the graph to `file` in `format`, the values of options
/// save_tensors_file and save_tensors_format.
void saveGraph(const std::string &file, const std::string &format,
               const GraphSnapshot &graph);

/// An input or output of a program.
struct TensorDescription {
  bool isInput;
  size_t index;
  std::string name;
  torch::lazy::Shape shape;
  bool isDonated;
};
/// Describes a program's inputs, then its outputs.
std::vector<TensorDescription> describeTensors(const GraphSnapshot &graph,
                                               const Program &program);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_DUMP_H
