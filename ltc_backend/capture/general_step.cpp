//===- general_step.cpp - A captured step's program for all sizes ---------===//

#include "capture/general_step.h"

#include "compilation/general_maker.h"
#include "compilation/general_programs.h"
#include "config/config.h"
#include "events/metrics.h"
#include "events/step_log.h"

using namespace torch_ltc;

GeneralStepPtr GeneralStep::of(const Recording &recording) {
  // These options wrap each program in checks.
  if (config().detect_nan.get() || config().lockstep.get())
    return nullptr;
  Sighting sighting = noteSizes(recording.graph);
  if (!sighting.general ||
      !GeneralPrograms::get().isReady(sighting.general->skeleton()))
    return nullptr;
  try {
    return GeneralStepPtr(new GeneralStep(sighting.general));
  } catch (const c10::Error &) {
    return nullptr; // the graph has no instance at its stand-ins
  }
}

SymbolValues GeneralStep::symbolsOf(const GraphSnapshotPtr &graph) const {
  std::string reason;
  auto values = general->bind(generalNumbersOf(graph), &reason);
  TORCH_CHECK_VALUE(values, reason);
  return *values;
}

GeneralStep::Instance
GeneralStep::at(SizeOf sizeOf, c10::ArrayRef<std::optional<int64_t>> symbols,
                std::string &reason) const {
  std::optional<SymbolValues> values = general->valuesOfSizes(sizeOf, symbols);
  if (!values) {
    reason = "the sizes of the arguments don't determine all numbers of the "
             "program";
    return {};
  }
  Stopwatch stopwatch;
  Instance instance;
  try {
    HashState name(13);
    name.add(general->hash());
    for (int64_t value : *values)
      name.add(uint64_t(value));
    instance.graph = std::make_shared<const GraphSnapshot>(
        general->instantiate(*values, name.finish().text()));
  } catch (const c10::Error &error) {
    reason = error.what_without_backtrace();
    return {};
  }
  Sighting sighting;
  sighting.general = general;
  sighting.values = *values;
  sighting.numbers = numbersOf(*instance.graph);
  // The instance may have another structure: for example, a size may be 1.
  if (general->bind(sighting.numbers, &reason) != values) {
    reason = "the program for all sizes isn't valid for these sizes";
    return {};
  }
  CompileEvent event;
  event.program = instance.graph->name;
  event.reason = "new sizes of a captured step";
  event.ops = int64_t(instance.graph->numOps);
  event.parameters = int64_t(instance.graph->parameters.size());
  event.outputs = int64_t(instance.graph->results.size());
  instance.program = bindGeneral(instance.graph, sighting, event);
  if (!instance.program) {
    reason = event.reason;
    return {};
  }
  event.seconds = stopwatch.seconds();
  addCompileEvent(event);
  return instance;
}
