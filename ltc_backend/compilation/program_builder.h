//===- program_builder.h - Graphs as torch-dialect programs -----*- C++ -*-===//

#ifndef TORCH_LTC_COMPILATION_PROGRAM_BUILDER_H
#define TORCH_LTC_COMPILATION_PROGRAM_BUILDER_H

#include "compilation/compiler_library.h"
#include "graph/graph.h"

#include <string>

namespace torch_ltc {

/// Owns a program under construction.
class ProgramHandle {
public:
  /// `other`: a program that will be compiled together with this one, or null.
  ProgramHandle(const CompilerLibrary &library, const std::string &name,
                const ProgramHandle *other = nullptr);
  ~ProgramHandle();
  ProgramHandle(const ProgramHandle &) = delete;
  ProgramHandle &operator=(const ProgramHandle &) = delete;
  LtcProgram get() const { return program; }

private:
  const CompilerLibrary &library;
  LtcProgram program = nullptr;
};

/// Adds the graph's parameters, ops and results to `program`. Throws
/// std::runtime_error with a message that names the op and the user's line.
void buildProgram(const CompilerLibrary &library, LtcProgram program,
                  const GraphSnapshot &graph);

/// Text of the graph at a stage that stages.def lists, such as "ir", "torch" or
/// "kernels".
std::string stageText(const GraphSnapshot &graph, const std::string &stage);

/// Options of `stageModule`.
struct StageRequest {
  std::string stage;
  std::vector<std::string> legalOps; // see LtcStageOptions
  bool portable = false;             // see LtcStageOptions
  bool bytecode = false;
  bool locations = false;
};

/// Converts the request for the C API. The result points to `legalOps`, which
/// this function fills, and to strings of `request`.
LtcStageOptions stageOptions(const StageRequest &request,
                             std::vector<const char *> &legalOps);

/// Returns the graph at a stage that stages.def lists, except "ir", as text or,
/// for another compiler, as MLIR bytecode. Throws std::runtime_error.
std::string stageModule(const GraphSnapshot &graph,
                        const StageRequest &request);

/// Name of the function in every stage of the graph.
std::string entryName(const GraphSnapshot &graph);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_PROGRAM_BUILDER_H
