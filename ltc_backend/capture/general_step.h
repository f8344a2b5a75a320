//===- general_step.h - A captured step's program for all sizes -*- C++ -*-===//

#ifndef TORCH_LTC_CAPTURE_GENERAL_STEP_H
#define TORCH_LTC_CAPTURE_GENERAL_STEP_H

#include "execution/recording.h"
#include "general/varying_quantities.h"

#include <c10/util/FunctionRef.h>

namespace torch_ltc {

/// The program for all sizes of which a recorded program is an instance.
class GeneralStep {
public:
  /// Returns null if there is no compiled program for all sizes that the
  /// recorded step fits.
  static std::shared_ptr<const GeneralStep> of(const Recording &recording);

  /// Identifies the general graph.
  std::string name() const { return general->hash().text(); }
  /// The sizes and element counts that vary, in a graph of this step.
  std::vector<int64_t> quantitiesIn(const GraphSnapshot &graph) const {
    return quantities.valuesIn(graph);
  }
  /// The values of the symbols in a graph of this step. Throws c10::Error if
  /// the graph doesn't fit.
  SymbolValues symbolsOf(const GraphSnapshotPtr &graph) const;
  /// The quantity that size `dim` of a value is; none for a constant.
  std::optional<size_t> quantity(ResultRef value, size_t dim) const {
    return quantities.find(value, dim);
  }

  /// The size of a parameter; none if it isn't known before the step runs.
  using SizeOf =
      c10::function_ref<std::optional<int64_t>(size_t parameter, size_t dim)>;
  struct Instance {
    GraphSnapshotPtr graph; // without data
    ProgramPtr program;
  };
  /// Binds the program to the sizes of the parameters; `symbols` has the values
  /// of symbols that these sizes don't determine. Returns no program and sets
  /// `reason` if they don't determine a valid instance.
  Instance at(SizeOf sizeOf, c10::ArrayRef<std::optional<int64_t>> symbols,
              std::string &reason) const;

private:
  explicit GeneralStep(GeneralGraphPtr graph)
      : general(std::move(graph)), quantities(*general) {}

  GeneralGraphPtr general;
  VaryingQuantities quantities;
};
using GeneralStepPtr = std::shared_ptr<const GeneralStep>;

} // namespace torch_ltc

#endif // TORCH_LTC_CAPTURE_GENERAL_STEP_H
