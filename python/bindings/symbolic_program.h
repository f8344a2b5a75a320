//===- symbolic_program.h - A program for all sizes as text -----*- C++ -*-===//

#ifndef TORCH_LTC_PYTHON_SYMBOLIC_PROGRAM_H
#define TORCH_LTC_PYTHON_SYMBOLIC_PROGRAM_H

#include "compilation/program_builder.h"
#include "general/general_graph.h"

namespace torch_ltc {

/// The name of a symbol in the program's text, and the range of its values for
/// which the program is valid.
struct SymbolRange {
  std::string name;
  int64_t least = 2, most = INT64_MAX;
};

/// One module for all sizes of a general graph, for other compilers.
class SymbolicProgram {
public:
  /// `ranges`: of each symbol, or empty. Throws std::runtime_error, with the op
  /// and the user's line, if a number is no known function of the sizes.
  SymbolicProgram(GeneralGraphPtr general, std::vector<SymbolRange> ranges,
                  const StageRequest &request);

  const GeneralGraphPtr &general() const { return graph; }
  const std::vector<SymbolRange> &symbols() const { return ranges; }
  /// Text or bytecode.
  const std::string &module() const { return text; }
  /// Symbols whose values are arguments, after all others.
  const std::vector<size_t> &parameters() const { return symbolParameters; }

  /// Whether the program is one of these numbers, at which the symbols have
  /// these values; otherwise the reason.
  bool isValid(c10::ArrayRef<int64_t> values, const TraceNumbers &numbers,
               std::string &reason) const;

private:
  GeneralGraphPtr graph;
  std::vector<SymbolRange> ranges;
  std::string text, checks;
  std::vector<size_t> symbolParameters;
};

/// Text of a module of a symbolic program at certain sizes. Throws
/// std::runtime_error.
std::string
specializeModule(const std::string &module,
                 c10::ArrayRef<std::pair<std::string, int64_t>> sizes);

} // namespace torch_ltc

#endif // TORCH_LTC_PYTHON_SYMBOLIC_PROGRAM_H
