//===- program_choice.cpp - The program that runs a graph -----------------===//

#include "execution/program_choice.h"

#include "compilation/background_compiler.h"
#include "compilation/dump.h"
#include "compilation/external_backend.h"
#include "compilation/program_maker.h"
#include "config/config.h"
#include "events/metrics.h"
#include "execution/recording.h"
#include "execution/step_executor.h"
#include "graph/donation.h"
#include "memory/blocking.h"
#include "programs/program_cache.h"

#include <torch/csrc/lazy/core/metrics.h>

using namespace torch_ltc;

namespace {

Hash128 programHash(const Graph &graph, const std::vector<bool> &donatable) {
  HashState state(5);
  state.add(graph.hash);
  uint64_t word = 1;
  for (size_t i = 0; i < donatable.size(); ++i) {
    word = word << 1 | uint64_t(donatable[i]);
    if (i % 32 == 31) {
      state.add(word);
      word = 1;
    }
  }
  state.add(word);
  state.add(programOptionsHash());
  // Tier `interpret` has separate programs; all other tiers share theirs.
  state.add(config().tier.get() == "interpret");
  // Adds the ops' lines: errors of these programs contain them, so the same
  // graph traced from different lines needs a different program.
  if (config().detect_nan.get() || config().lockstep.get() ||
      config().tier.get() == "interpret")
    for (const GraphNode *node : graph.nodes)
      state.add(node->isData() ? 0
                               : static_cast<const OpNode *>(node)->location());
  if (uint64_t generation = selectedBackendGeneration())
    state.add(generation);
  return state.finish();
}

/// Writes the logs and dumps that options request, before the step runs.
void writeDumps(const ChosenProgram &chosen, const Graph &graph,
                const Hash128 &hash) {
  auto snapshot = [&] {
    return takeSnapshot(graph, hash.text(), chosen.donatable);
  };
  if (!config().dump.get().empty()) {
    std::string folder =
        ensureDumped(*chosen.program, StepExecutor::get().stepNumber(),
                     chosen.location, snapshot);
    if (config().dump_inputs.get() && !folder.empty())
      saveInputs(folder, graph);
  }
  if (std::string file = config().save_tensors_file.get(); !file.empty())
    saveGraph(file, config().save_tensors_format.get(), snapshot());
}

void noteMemoryHit(Program &program) {
  count(Counter::program_memory_hits);
  TORCH_LAZY_COUNTER("CachedCompile", 1);
  program.noteReuse();
}

/// Whether the program may run as it is. A recorded step that repeats a program
/// can't use a placeholder, because it is probably captured: replays run
/// exactly the program that was recorded.
bool mayUse(const Program &program, bool isRepeated) {
  return !program.isPlaceholder() || (!(Recording::current() && isRepeated) &&
                                      config().tier.get() != "compile");
}

ProgramPtr compileNow(const Hash128 &hash, const ProgramPtr &placeholder) {
  placeholder->requestCompilation();
  waitForBackgroundCompilations();
  ProgramPtr program = findProgram(hash);
  return program ? program : placeholder;
}

} // namespace

ChosenProgram torch_ltc::chooseProgram(const Graph &graph,
                                       c10::ArrayRef<torch::lazy::Value> roots,
                                       bool mayDonate) {
  ChosenProgram chosen;
  auto findDonatableNow = [&] {
    return mayDonate ? findDonatable(graph, roots)
                     : std::vector<bool>(graph.parameters.size(), false);
  };
  bool isWatched =
      !config().dump.get().empty() || !config().save_tensors_file.get().empty();
  chosen.donatable = findDonatableNow();
  for (;;) {
    chosen.origin = "memory";
    chosen.location = 0;
    Hash128 hash = programHash(graph, chosen.donatable);
    chosen.program = findProgram(hash);
    bool mayRun = chosen.program && mayUse(*chosen.program, true);
    if (mayRun && !isWatched && !isQueueFull()) {
      noteMemoryHit(*chosen.program);
      return chosen;
    }
    bool wasInMemory = true;
    GraphSnapshot snapshot;
    if (!chosen.program)
      snapshot = takeSnapshot(graph, hash.text(), chosen.donatable);
    auto make = [&] {
      chosen.location = captureLocation();
      return makeProgram(std::move(snapshot), hash,
                         StepExecutor::get().stepNumber(), chosen.location,
                         chosen.origin, Recording::current() != nullptr);
    };
    {
      BlockingScope unlocked;
      if (!chosen.program)
        chosen.program = findOrMakeProgram(hash, make, wasInMemory);
      if (!mayUse(*chosen.program, wasInMemory))
        chosen.program = compileNow(hash, chosen.program);
      writeDumps(chosen, graph, hash);
      waitForRoomInQueue();
    }
    std::vector<bool> donatable = findDonatableNow();
    bool isUnchanged = true;
    for (size_t i = 0; i < donatable.size(); ++i)
      isUnchanged &= donatable[i] || !chosen.donatable[i];
    if (isUnchanged) {
      if (wasInMemory)
        noteMemoryHit(*chosen.program);
      else
        TORCH_LAZY_COUNTER("UncachedCompile", 1);
      return chosen;
    }
    chosen.donatable.assign(donatable.size(), false);
  }
}
