//===- program_maker.cpp - A program for a new graph ----------------------===//

#include "compilation/program_maker.h"

#include "compilation/background_compiler.h"
#include "compilation/compilation.h"
#include "compilation/compilation_lock.h"
#include "compilation/compile_cost.h"
#include "compilation/compiler_library.h"
#include "compilation/disk_cache.h"
#include "compilation/dump.h"
#include "compilation/external_backend.h"
#include "compilation/general_maker.h"
#include "compilation/library_pages.h"
#include "compilation/placeholder_program.h"
#include "compilation/program_builder.h"
#include "compilation/progress_line.h"
#include "config/config.h"
#include "config/log.h"
#include "events/explanations.h"
#include "events/guards.h"
#include "events/metrics.h"
#include "events/step_log.h"
#include "graph/graph_difference.h"
#include "programs/interpreted_program.h"
#include "programs/program_cache.h"

#include <ATen/record_function.h>

#include <stdexcept>

using namespace torch_ltc;

namespace {

void describe(const CompiledProgram &program, CompileEvent &event) {
  event.kernels = int64_t(program.numKernels());
  event.commands = int64_t(program.numCommands());
  event.arenaBytes = program.arenaBytes();
}

ProgramPtr loadFromDisk(const GraphSnapshotPtr &graph, const Hash128 &hash,
                        CompileEvent &event) {
  std::optional<std::string> bytes = lookupProgram(hash);
  if (!bytes)
    return nullptr;
  try {
    auto program =
        std::make_shared<CompiledProgram>(graph, bytes->data(), bytes->size());
    describe(*program, event);
    count(Counter::program_disk_hits);
    event.origin = "disk";
    return program;
  } catch (const std::runtime_error &error) {
    count(Counter::cache_rejected);
    log(LogLevel::Warning,
        "A cached program is compiled again: " + std::string(error.what()));
    return nullptr;
  }
}

ProgramPtr compileNew(const GraphSnapshotPtr &graph, const Hash128 &hash,
                      const std::string &dumpFolder, CompileEvent &event) {
  event.expectedSeconds = expectedCompileSeconds(*graph);
  Stopwatch stopwatch;
  auto compilation = std::make_shared<Compilation>();
  {
    ProgressLine progress(
        "Compiling the program of step " + std::to_string(event.step) +
        (event.location.empty() ? "" : " (at " + event.location + ")") + ", " +
        std::to_string(event.ops) + " ops, has taken a second so far" +
        (config().cache.get() ? "; the disk cache will store the result."
                              : "."));
    compile(*graph, !dumpFolder.empty(), compilation);
  }
  auto program = std::make_shared<CompiledProgram>(
      graph, compilation->executable.data, compilation->executable.size);
  if (config().cache.get())
    storeProgram(hash, compilation->executable.data,
                 compilation->executable.size);
  describe(*program, event);
  noteStatistics(compilation->statistics, event);
  event.seconds = stopwatch.seconds();
  recordTime(Timer::compile, event.seconds);
  noteCompilation(*graph, event.seconds);
  if (!dumpFolder.empty())
    event.dumpDirectory =
        dumpProgram(dumpFolder, *graph, *program, compilation->texts, event);
  return program;
}

/// Compiles the graph. If another process compiles it or has compiled it, loads
/// that program from the disk cache instead.
ProgramPtr compileOnce(const GraphSnapshotPtr &graph, const Hash128 &hash,
                       CompileEvent &event) {
  if (!config().cache.get())
    return compileNew(graph, hash, /*dumpFolder=*/"", event);
  CompilationLock lock(hash.text());
  ProgramPtr program = loadFromDisk(graph, hash, event);
  return program ? program : compileNew(graph, hash, /*dumpFolder=*/"", event);
}

std::string programOfStep(const CompileEvent &event) {
  return "The program of step " + std::to_string(event.step);
}

/// Throws if option compile_failure requests it.
void raiseIfWanted(const std::string &error, LocationId location,
                   const CompileEvent &event) {
  TORCH_CHECK(config().compile_failure.get() != "raise", programOfStep(event),
              " can't be compiled: ", error, messageSuffix(location),
              ". Its tensors stay pending; with torch_ltc.config."
              "compile_failure = 'interpret' it runs op by op.");
}

/// Makes an interpreted program for a graph that can't be compiled. Its results
/// are the same, so this only warns; the caller stores the program, so there is
/// one warning for each graph.
ProgramPtr interpretInstead(const GraphSnapshotPtr &graph,
                            const std::string &error, LocationId location,
                            CompileEvent &event) {
  std::string cause =
      error.ends_with('.') ? error.substr(0, error.size() - 1) : error;
  log(LogLevel::Warning,
      programOfStep(event) + " can't be compiled: " + cause +
          messageSuffix(location) +
          ". It runs op by op with PyTorch's CPU kernels, with the same "
          "results but slower; to compile the rest of it, name the op in "
          "option force_fallback (LTC_FORCE_FALLBACK=aten::...)" +
          (config().source_info.get()
               ? "."
               : "; TORCH_LTC_SOURCE_INFO=1 adds the op's Python line."));
  event.origin = "interpreted";
  event.difference = nullptr;
  event.reason = "can't be compiled: " + error;
  return std::make_shared<InterpretedProgram>(graph);
}

bool mayCompileLater() {
  // With other values of these options, a step needs the compiled program, or
  // the compiler's error, immediately.
  return config().tier.get() == "auto" && !config().detect_nan.get() &&
         !config().lockstep.get() && config().dump.get().empty() &&
         config().compile_failure.get() != "raise";
}

/// Makes an interpreted program that runs until the graph's compiled program is
/// ready.
std::shared_ptr<PlaceholderProgram>
makePlaceholder(const GraphSnapshotPtr &graph, const Hash128 &hash,
                const Hash128 &skeleton, LocationId location,
                const CompileEvent &event) {
  auto compile = [=] {
    compileInBackground([=] {
      CompileEvent compiled = event;
      ProgramPtr program;
      try {
        program = compileOnce(graph, hash, compiled);
      } catch (const std::exception &error) {
        if (areCompilationsCancelled())
          return;
        // The error can't be raised: the step that needed the program has run.
        count(Counter::compile_failures);
        program = interpretInstead(graph, error.what(), location, compiled);
      }
      explainCompilation(compiled);
      addCompileEvent(compiled);
      replacePlaceholder(hash, graph->name, program);
      noteCompilerUse();
    });
  };
  auto noteRuns = [known = KnownSizes{graph, hash, skeleton, event}](
                      PlaceholderProgram &program) {
    return noteKnownSizes(known, program);
  };
  return std::make_shared<PlaceholderProgram>(graph, compile, noteRuns);
}

/// Sets the reason for a new program. The event only has weak references to the
/// compared graphs, which belong to programs.
void noteDifference(const GraphSnapshotPtr &graph, CompileEvent &event) {
  std::vector<GraphSnapshotPtr> known = recentGraphs();
  if (known.empty()) {
    event.reason = "first program";
    return;
  }
  using WeakGraph = std::weak_ptr<const GraphSnapshot>;
  std::vector<WeakGraph> others(known.begin(), known.end());
  event.difference = [next = WeakGraph(graph),
                      others = std::move(others)]() -> std::string {
    std::vector<GraphSnapshotPtr> earlier;
    for (const WeakGraph &other : others)
      if (GraphSnapshotPtr alive = other.lock())
        earlier.push_back(std::move(alive));
    GraphSnapshotPtr now = next.lock();
    if (!now || earlier.empty())
      return "it differs from programs that are no longer in memory";
    return firstDifference(*nearestGraph(*now, earlier), *now);
  };
}

/// Compiles a graph outside of steps, for option lockstep.
ProgramPtr compileApart(const GraphSnapshot &graph) {
  auto compilation = std::make_shared<Compilation>();
  compile(graph, /*withTexts=*/false, compilation);
  return std::make_shared<CompiledProgram>(
      std::make_shared<const GraphSnapshot>(graph),
      compilation->executable.data, compilation->executable.size);
}

/// The backend's program for all sizes, bound to the graph's sizes; null if
/// there is none.
ProgramPtr makeBound(const ExternalBackend &backend,
                     const GraphSnapshotPtr &graph, CompileEvent &event) {
  Sighting sighting = noteSizes(graph);
  if (sighting.numbers.sizes.empty())
    return nullptr;
  bool isCompiled = false;
  std::string reason;
  ProgramPtr program =
      bindExternal(backend, graph, sighting, isCompiled, reason);
  if (!reason.empty())
    event.reason += "; " + reason;
  if (isCompiled)
    count(Counter::compilations);
  if (!program)
    return nullptr;
  program->isBound = true;
  count(Counter::programs_bound);
  event.origin = "bound";
  event.sizes.clear();
  for (size_t i = 0; i < sighting.general->symbols().size(); ++i)
    event.sizes.push_back(sighting.general->symbolText(i));
  return program;
}

/// Compiles the graph with a user-supplied backend. Raises the backend's
/// errors, instead of hiding them by interpreting the program.
ProgramPtr makeExternal(const ExternalBackend &backend,
                        const GraphSnapshotPtr &graph, LocationId location,
                        CompileEvent &event) {
  Stopwatch stopwatch;
  ProgramPtr program;
  try {
    if (backend.compileGeneral)
      program = makeBound(backend, graph, event);
    if (!program) {
      program = backend.compile(graph);
      event.origin = "compiled";
      count(Counter::compilations);
    }
  } catch (const std::runtime_error &error) {
    TORCH_CHECK(false, programOfStep(event),
                " can't be compiled: ", error.what(), messageSuffix(location));
  }
  program->name = graph->name;
  program->numOps = graph->numOps;
  for (ResultRef result : graph->results) {
    OutputPlan plan;
    plan.updatedParameter = updatedParameter(*graph, result);
    program->outputs.push_back(plan);
  }
  event.seconds = stopwatch.seconds();
  recordTime(Timer::compile, event.seconds);
  return program;
}

/// The compile log's row of a program that hasn't been made yet.
CompileEvent eventOf(const GraphSnapshotPtr &graph, int64_t step,
                     LocationId location) {
  CompileEvent event;
  event.program = graph->name;
  event.step = step;
  event.location = shortText(location);
  noteDifference(graph, event);
  event.varying = takeVaryingNumbers();
  event.ops = int64_t(graph->numOps);
  event.parameters = int64_t(graph->parameters.size());
  event.outputs = int64_t(graph->results.size());
  return event;
}

/// Makes a program with our own compiler: loads it from the disk cache,
/// compiles it or, in tier `auto`, makes a placeholder until it is compiled.
/// `sighting`: what is known about the graph's sizes; null if a program for all
/// sizes isn't allowed.
ProgramPtr makeOwn(const GraphSnapshotPtr &graph, const Hash128 &hash,
                   Sighting *sighting, bool isRecorded, LocationId location,
                   CompileEvent &event) {
  ProgramPtr program;
  const std::string dumpFolder = config().dump.get();
  // A program from the disk cache has no texts of its stages, so it is only
  // used if the dump already exists.
  if (!dumpFolder.empty())
    event.dumpDirectory = findDump(dumpFolder, graph->name);
  if (config().cache.get() &&
      (dumpFolder.empty() || !event.dumpDirectory.empty()) &&
      (!mayCompileLater() || mayHaveProgram(hash)))
    program = loadFromDisk(graph, hash, event);
  if (!program && sighting && (isRecorded || config().tier.get() == "compile"))
    program = makeAndBindGeneral(graph, *sighting, event);
  if (!program && mayCompileLater()) {
    Sighting none;
    Sighting &seen = sighting ? *sighting : none;
    auto placeholder =
        makePlaceholder(graph, hash, seen.numbers.skeleton, location, event);
    noteNewSizes(graph, seen, placeholder, event);
    program = placeholder;
    event.origin = "interpreted";
    event.reason += " (until its program is compiled)";
  }
  if (!program)
    program = dumpFolder.empty() ? compileOnce(graph, hash, event)
                                 : compileNew(graph, hash, dumpFolder, event);
  return program;
}

/// Makes each run of the program perform the checks that options request.
ProgramPtr withChecks(ProgramPtr program, const GraphSnapshotPtr &graph,
                      const ExternalBackendPtr &backend) {
  if (config().detect_nan.get())
    program = std::make_shared<CheckedProgram>(program, graph);
  if (config().lockstep.get())
    program = std::make_shared<LockstepProgram>(
        program, graph, [backend](const GraphSnapshot &all) -> ProgramPtr {
          if (!backend)
            return compileApart(all);
          return backend->compile(std::make_shared<const GraphSnapshot>(all));
        });
  return program;
}

} // namespace

ProgramPtr torch_ltc::makeProgram(GraphSnapshot snapshot, const Hash128 &hash,
                                  int64_t step, LocationId location,
                                  std::string &origin, bool isRecorded) {
  auto graph = std::make_shared<const GraphSnapshot>(std::move(snapshot));
  Stopwatch stopwatch;
  CompileEvent event = eventOf(graph, step, location);
  Sighting sighting;
  ProgramPtr program;
  ExternalBackendPtr backend = selectedBackend();
  bool mayBeBound = !backend && config().dump.get().empty() &&
                    config().tier.get() != "interpret";
  if (mayBeBound) {
    sighting = noteSizes(graph);
    program = bindGeneral(graph, sighting, event);
  }
  if (!program && isForbidden(Forbidden::recompile))
    checkAllowed(Forbidden::recompile,
                 "A new program would be compiled: " +
                     (event.difference ? reasonOf(event)
                                       : "it is the process's first one"));
  at::RecordFunction span(at::RecordScope::FUNCTION);
  if (span.isActive())
    span.before("torch_ltc::compile");
  try {
    if (program) {
      // `bindGeneral` returned the program.
    } else if (backend) {
      program = makeExternal(*backend, graph, location, event);
    } else if (config().tier.get() == "interpret") {
      event.origin = "interpreted";
      program = std::make_shared<InterpretedProgram>(graph);
    } else {
      program = makeOwn(graph, hash, mayBeBound ? &sighting : nullptr,
                        isRecorded, location, event);
    }
  } catch (const std::runtime_error &error) {
    count(Counter::compile_failures);
    raiseIfWanted(error.what(), location, event);
    program = interpretInstead(graph, error.what(), location, event);
  }
  program = withChecks(std::move(program), graph, backend);
  origin = event.origin;
  event.seconds = stopwatch.seconds();
  // Placeholders and bound programs get a row in the compile log, but no
  // message.
  if (!program->isPlaceholder() && !program->isBound)
    explainCompilation(event);
  addCompileEvent(event);
  addRecentProgram({graph, program});
  noteCompilerUse();
  return program;
}

std::string
torch_ltc::ensureDumped(const Program &program, int64_t step,
                        LocationId location,
                        const std::function<GraphSnapshot()> &snapshot) {
  std::string folder = config().dump.get();
  std::string path = findDump(folder, program.name);
  if (!path.empty() || hasDumpFailed(folder, program.name))
    return path;
  GraphSnapshot graph = snapshot();
  CompileEvent event = compileEventOf(program.name);
  event.program = program.name;
  event.step = step;
  event.location = shortText(location ? location : captureLocation());
  event.ops = int64_t(graph.numOps);
  auto compilation = std::make_shared<Compilation>();
  try {
    compile(graph, /*withTexts=*/true, compilation);
  } catch (const std::runtime_error &error) {
    // Not an error of the run: the compiler rejects some graphs, which are
    // interpreted.
    log(LogLevel::Warning,
        "The dump of program " + graph.name.substr(0, 12) +
            " ends before the failing stage: " + error.what());
  }
  path = dumpProgram(folder, graph, program, compilation->texts, event);
  setDumpDirectory(program.name, path);
  return path;
}

void torch_ltc::ensureTracedDumped(const GraphSnapshot &graph) {
  std::string folder = config().dump.get();
  if (folder.empty() || !findDump(folder, graph.name).empty() ||
      hasDumpFailed(folder, graph.name))
    return;
  auto compilation = std::make_shared<Compilation>();
  compile(graph, /*withTexts=*/true, compilation);
  CompiledProgram program(std::make_shared<const GraphSnapshot>(graph),
                          compilation->executable.data,
                          compilation->executable.size);
  CompileEvent event;
  event.program = graph.name;
  event.ops = int64_t(graph.numOps);
  event.parameters = int64_t(graph.parameters.size());
  event.outputs = int64_t(graph.results.size());
  event.reason = "a graph of torch.compile";
  describe(program, event);
  dumpProgram(folder, graph, program, compilation->texts, event);
}
