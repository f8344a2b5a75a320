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
  /// Symbols without an element in `ranges` have the default range. Throws
  /// std::runtime_error, with the op and the user's line, if a number isn't a
  /// known function of the sizes.
  SymbolicProgram(GeneralGraphPtr general, std::vector<SymbolRange> ranges,
                  const StageRequest &request);

  const GeneralGraphPtr &general() const { return graph; }
  const std::vector<SymbolRange> &symbols() const { return ranges; }
  /// The module as text or as bytecode, as requested.
  const std::string &module() const { return text; }
  /// Indices of the symbols whose values are the program's last arguments.
  const std::vector<size_t> &parameters() const { return symbolParameters; }

  /// Whether the program is valid for a graph with these values of the symbols
  /// and these numbers. If not, stores the reason in `reason`.
  bool isValid(c10::ArrayRef<int64_t> values, const TraceNumbers &numbers,
               std::string &reason) const;

private:
  GeneralGraphPtr graph;
  std::vector<SymbolRange> ranges;
  std::string text, checks;
  std::vector<size_t> symbolParameters;
};

/// Returns the text of a symbolic program's module at the given (symbol, value)
/// pairs. Throws std::runtime_error if the module isn't valid there.
std::string
specializeModule(const std::string &module,
                 c10::ArrayRef<std::pair<std::string, int64_t>> sizes);

} // namespace torch_ltc

#endif // TORCH_LTC_PYTHON_SYMBOLIC_PROGRAM_H
