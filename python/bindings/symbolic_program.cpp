//===- symbolic_program.cpp - A program for all sizes as text -------------===//

#include "symbolic_program.h"

#include "compilation/general_programs.h"
#include "programs/program.h"

#include <algorithm>
#include <stdexcept>

using namespace torch_ltc;

namespace {

std::string takeBytes(LtcBytes bytes) {
  std::string result(bytes.data, bytes.size);
  ltcBytesDestroy(bytes);
  return result;
}

/// Returns values of the symbols at which the module is also compared with the
/// graph: those of a sample, each changed by a different amount.
SymbolValues otherValues(const GeneralGraph &general) {
  SymbolValues values = general.standIns()[1];
  for (size_t i = 0; i < values.size(); ++i)
    values[i] += 3 + 2 * int64_t(i);
  return values;
}

} // namespace

SymbolicProgram::SymbolicProgram(GeneralGraphPtr general,
                                 std::vector<SymbolRange> symbolRanges,
                                 const StageRequest &request)
    : graph(std::move(general)), ranges(std::move(symbolRanges)) {
  const CompilerLibrary &library = compilerLibrary();
  GeneralSamples samples(graph);
  size_t count = graph->symbols().size();
  for (size_t i = ranges.size(); i < count; ++i)
    ranges.push_back({.name = "s" + std::to_string(i)});
  SymbolValues other = otherValues(*graph);
  samples.graphs.push_back(graph->instantiate(other, graph->hash().text()));
  std::vector<std::unique_ptr<ProgramHandle>> handles;
  std::vector<LtcProgram> programs;
  for (const GraphSnapshot &sample : samples.graphs) {
    handles.push_back(std::make_unique<ProgramHandle>(
        library, entryName(sample),
        handles.empty() ? nullptr : handles[0].get()));
    programs.push_back(handles.back()->get());
    buildProgram(library, programs.back(), sample);
  }
  LtcSizeSamples sizes{};
  sizes.num_symbols = count;
  sizes.num_checked = samples.numbers[0].sizes.size();
  for (size_t i = 0; i < LTC_GENERAL_SAMPLES; ++i) {
    sizes.symbols[i] = graph->standIns()[i].data();
    sizes.checked[i] = samples.numbers[i].sizes.data();
  }
  // The compiler sets these ranges after it has compared the module with its
  // samples, because stand-ins may be outside the ranges.
  std::vector<LtcSizeSymbol> symbols;
  for (const SymbolRange &range : ranges)
    symbols.push_back({range.name.c_str(), range.least, range.most});
  LtcSymbolicProgram program{programs.data(), &sizes, symbols.data(),
                             programs.back(), other.data()};
  std::vector<const char *> legalOps;
  LtcStageOptions options = stageOptions(request, legalOps);
  LtcBytes module{}, numbers{};
  std::vector<int> areParameters(count);
  throwIfFailed(library.ltcProgramsSymbolicStage(
      &program, &options, &module, &numbers, areParameters.data()));
  text = takeBytes(module);
  checks = takeBytes(numbers);
  for (size_t i = 0; i < count; ++i)
    if (areParameters[i])
      symbolParameters.push_back(i);
}

bool SymbolicProgram::isValid(c10::ArrayRef<int64_t> values,
                              const TraceNumbers &numbers,
                              std::string &reason) const {
  for (size_t i = 0; i < ranges.size(); ++i)
    if (values[i] < ranges[i].least || values[i] > ranges[i].most) {
      reason = ranges[i].name + " is " + std::to_string(values[i]) +
               ", the program is for " + std::to_string(ranges[i].least) +
               " to " + std::to_string(ranges[i].most);
      return false;
    }
  LtcSizes sizes{values.data(), values.size(), numbers.sizes.data(),
                 numbers.sizes.size()};
  try {
    throwIfFailed(ltcSizesCheck(checks.data(), checks.size(), &sizes));
  } catch (const std::runtime_error &error) {
    reason = error.what();
    return false;
  }
  return true;
}

std::string torch_ltc::specializeModule(
    const std::string &module,
    c10::ArrayRef<std::pair<std::string, int64_t>> sizes) {
  const CompilerLibrary &library = compilerLibrary();
  std::vector<LtcSizeValue> values;
  for (const auto &[name, value] : sizes)
    values.push_back({name.c_str(), value});
  LtcBytes result{};
  throwIfFailed(library.ltcModuleSpecialize(library.compiler, module.data(),
                                            module.size(), values.data(),
                                            values.size(), &result));
  return takeBytes(result);
}
