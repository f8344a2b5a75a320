//===- step_observers.cpp - What else happens with each step --------------===//

#include "execution/step_observers.h"

#include "config/config.h"
#include "events/explanations.h"
#include "execution/recording.h"
#include "graph/tensor_names.h"
#include "source/source_location.h"

using namespace torch_ltc;

namespace {

void nameResults(const ObservedStep &) { nameData(); }

/// Named parameters that the step replaces but can't overwrite, with the
/// reasons.
std::vector<std::pair<std::string, std::string>>
undonated(const Program &program, const Graph &graph,
          const std::vector<bool> &donatable,
          const std::vector<HostDataPtr> &results) {
  std::vector<std::pair<std::string, std::string>> found;
  for (size_t i = 0; i < results.size(); ++i) {
    if (program.outputs[i].place != OutputPlace::Fresh ||
        results[i]->name().empty())
      continue;
    for (size_t p = 0; p < graph.parameters.size(); ++p)
      if (graph.parameters[p]->name() == results[i]->name())
        found.emplace_back(
            results[i]->name(),
            donatable[p] ? "the program still reads it when the new value is "
                           "written"
            : graph.parameters[p]->sharesBuffer()
                ? "its memory is shared with another tensor"
                : "something else holds its old value");
  }
  return found;
}

void reportUndonated(const ObservedStep &observed) {
  const ChosenProgram &chosen = observed.chosen;
  if (chosen.origin == "memory" || chosen.program->isPlaceholder())
    return;
  auto names = undonated(*chosen.program, observed.graph, chosen.donatable,
                         observed.results);
  explainUndonated(names, chosen.location);
  setUndonated(chosen.program->name, std::move(names));
}

void noteInRecording(const ObservedStep &observed) {
  if (Recording *recording = Recording::current())
    recording->noteRun(observed);
}

void addLocations(const ObservedStep &observed) {
  ScheduledStep &step = observed.step;
  if (config().source_info.get())
    for (const GraphNode *node : observed.graph.nodes)
      step.nodeLocations.push_back(
          node->isData() ? 0 : static_cast<const OpNode *>(node)->location());
  LocationId location = observed.chosen.location;
  step.location = shortText(location ? location : captureLocationIfWanted());
}

constexpr void (*observers[])(const ObservedStep &) = {
    &nameResults, &reportUndonated, &noteInRecording, &addLocations};

} // namespace

void torch_ltc::callObservers(const ObservedStep &observed) {
  for (auto observe : observers)
    observe(observed);
}
