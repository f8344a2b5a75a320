//===- general_maker.cpp - Programs for all sizes -------------------------===//

#include "compilation/general_maker.h"

#include "compilation/background_compiler.h"
#include "compilation/compilation.h"
#include "compilation/disk_cache.h"
#include "compilation/general_programs.h"
#include "compilation/library_pages.h"
#include "compilation/placeholder_program.h"
#include "config/config.h"
#include "config/log.h"
#include "events/explanations.h"
#include "events/metrics.h"
#include "programs/program_cache.h"

#include <stdexcept>

using namespace torch_ltc;

namespace {

/// Compiles the general graph, or loads its executable from the disk cache.
/// Adds a row to the compile log; after a failure, the row contains the reason.
void makeGeneral(const std::shared_ptr<const GeneralSamples> &samples,
                 CompileEvent event) {
  Stopwatch stopwatch;
  const GeneralGraph &general = *samples->general;
  Hash128 hash = GeneralPrograms::hashOf(general);
  event.program = hash.text();
  event.difference = nullptr;
  event.reason = "one program for all sizes";
  auto reject = [&](const std::string &error) {
    GeneralPrograms::get().fail(general);
    SkeletonMemory::get().reject(general);
    event.origin = "rejected";
    event.reason = "no program for all sizes: " + error;
  };
  try {
    if (std::optional<std::string> bytes =
            config().cache.get() ? lookupProgram(hash) : std::nullopt) {
      GeneralPrograms::get().store(general, bytes->data(), bytes->size());
      count(Counter::program_disk_hits);
      event.origin = "disk";
    } else {
      auto compilation = std::make_shared<Compilation>();
      compileGeneral(samples, compilation);
      GeneralPrograms::get().store(general, compilation->executable.data,
                                   compilation->executable.size);
      noteStatistics(compilation->statistics, event);
      if (config().cache.get())
        storeProgram(hash, compilation->executable.data,
                     compilation->executable.size);
    }
  } catch (const std::runtime_error &error) {
    reject(error.what());
  } catch (const c10::Error &error) {
    reject(error.what_without_backtrace());
  } catch (...) { // a signal handler's exception
    GeneralPrograms::get().abandon(general);
    throw;
  }
  if (areCompilationsCancelled())
    return;
  if (event.origin == "rejected")
    log(LogLevel::Info, event.reason);
  event.seconds = stopwatch.seconds();
  recordTime(Timer::compile, event.seconds);
  explainCompilation(event);
  addCompileEvent(event);
  noteCompilerUse();
}

/// Whether to compile a program for all sizes for graphs that have run op by op
/// for `seconds`. Such a program takes up to twice as long to compile as one
/// for fixed sizes.
bool isGeneralWorthCompiling(double seconds, const GraphSnapshot &graph) {
  return isWorthCompiling(seconds / 2, graph);
}

/// Adds the description of the sizes to a compile event.
void describe(const Sighting &sighting, CompileEvent &event) {
  if (!sighting.reason.empty())
    event.reason += "; " + sighting.reason;
  event.sizes.clear();
  if (sighting.general)
    for (size_t i = 0; i < sighting.general->symbols().size(); ++i)
      event.sizes.push_back(sighting.general->symbolText(i));
}

} // namespace

Sighting torch_ltc::noteSizes(const GraphSnapshotPtr &graph) {
  if (config().varying_sizes.get() == "off")
    return {};
  return SkeletonMemory::get().note(graph);
}

ProgramPtr torch_ltc::bindGeneral(const GraphSnapshotPtr &graph,
                                  const Sighting &sighting,
                                  CompileEvent &event) {
  if (!sighting.general)
    return nullptr;
  std::string reason;
  ProgramPtr program = GeneralPrograms::get().bind(graph, sighting, reason);
  if (!reason.empty())
    event.reason += "; " + reason;
  if (!program)
    return nullptr;
  describe(sighting, event);
  program->isBound = true;
  event.origin = "bound";
  count(Counter::programs_bound);
  return program;
}

ProgramPtr torch_ltc::makeAndBindGeneral(const GraphSnapshotPtr &graph,
                                         Sighting &sighting,
                                         CompileEvent &event) {
  if (config().varying_sizes.get() == "off")
    return nullptr;
  if (!sighting.general)
    SkeletonMemory::get().generalize(sighting);
  describe(sighting, event);
  if (!sighting.general || !GeneralPrograms::get().begin(*sighting.general))
    return nullptr;
  makeGeneral(std::make_shared<GeneralSamples>(sighting.general), event);
  return bindGeneral(graph, sighting, event);
}

LtcExecutable torch_ltc::bindApart(const GraphSnapshotPtr &graph) {
  Sighting sighting = noteSizes(graph);
  if (sighting.numbers.sizes.empty())
    return nullptr;
  if (!sighting.general)
    SkeletonMemory::get().generalize(sighting);
  if (!sighting.general)
    return nullptr;
  if (GeneralPrograms::get().begin(*sighting.general)) {
    CompileEvent event;
    event.ops = int64_t(graph->numOps);
    event.parameters = int64_t(graph->parameters.size());
    event.outputs = int64_t(graph->results.size());
    describe(sighting, event);
    makeGeneral(std::make_shared<GeneralSamples>(sighting.general), event);
  }
  std::string reason;
  LtcExecutable bound = GeneralPrograms::get().bind(sighting, reason);
  if (bound)
    count(Counter::programs_bound);
  return bound;
}

void torch_ltc::noteNewSizes(const GraphSnapshotPtr &graph, Sighting &sighting,
                             const std::shared_ptr<PlaceholderProgram> &next,
                             CompileEvent &event) {
  if (config().varying_sizes.get() == "off")
    return;
  GeneralPrograms &programs = GeneralPrograms::get();
  const Hash128 &skeleton = sighting.numbers.skeleton;
  if (!isGeneralWorthCompiling(programs.noteNew(skeleton, next), *graph))
    return;
  programs.startAgain(skeleton);
  if (!sighting.general)
    SkeletonMemory::get().generalize(sighting);
  describe(sighting, event);
  if (!sighting.general || !programs.begin(*sighting.general))
    return;
  auto samples = std::make_shared<GeneralSamples>(sighting.general);
  programs.setBeingMade(skeleton, true);
  compileInBackground([samples, event, skeleton] {
    makeGeneral(samples, event);
    GeneralPrograms::get().setBeingMade(skeleton, false);
  });
}

static bool replaceByBound(const KnownSizes &known) {
  CompileEvent event = known.event;
  Stopwatch stopwatch;
  ProgramPtr program;
  try {
    Sighting sighting = noteSizes(known.graph);
    program = bindGeneral(known.graph, sighting, event);
    if (!program)
      program = makeAndBindGeneral(known.graph, sighting, event);
  } catch (const std::exception &error) {
    log(LogLevel::Info,
        "no program for all sizes: " + std::string(error.what()));
  }
  if (!program || areCompilationsCancelled())
    return false;
  event.seconds = stopwatch.seconds();
  addCompileEvent(event);
  replacePlaceholder(known.hash, known.graph->name, program);
  noteCompilerUse();
  return true;
}

bool torch_ltc::noteKnownSizes(const KnownSizes &known,
                               PlaceholderProgram &program) {
  GeneralPrograms &programs = GeneralPrograms::get();
  const Hash128 &skeleton = known.skeleton;
  if (config().varying_sizes.get() == "off" || *known.state == Binding::Failed)
    return false;
  if (*known.state == Binding::Pending)
    return true;
  if (!programs.isReady(skeleton)) {
    if (programs.isBeingMade(skeleton))
      return true;
    const double seconds = programs.noteRuns(skeleton, program);
    if (!isGeneralWorthCompiling(seconds, *known.graph))
      return false;
    programs.startAgain(skeleton);
    programs.setBeingMade(skeleton, true);
  }
  *known.state = Binding::Pending;
  compileInBackground([known] {
    bool isBound = replaceByBound(known);
    GeneralPrograms &programs = GeneralPrograms::get();
    programs.setBeingMade(known.skeleton, false);
    bool hasFailed = !isBound && programs.isReady(known.skeleton);
    *known.state = hasFailed ? Binding::Failed : Binding::None;
  });
  return true;
}
