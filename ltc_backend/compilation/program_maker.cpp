//===- program_maker.cpp - A program for a new graph ----------------------===//

#include "compilation/program_maker.h"

#include "compilation/background_compiler.h"
#include "compilation/compilation_lock.h"
#include "compilation/compile_cost.h"
#include "compilation/compiler_library.h"
#include "compilation/disk_cache.h"
#include "compilation/dump.h"
#include "compilation/external_backend.h"
#include "compilation/general_programs.h"
#include "compilation/interruptible_work.h"
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
#include "general/skeleton_memory.h"
#include "graph/graph_difference.h"
#include "programs/interpreted_program.h"
#include "programs/program_cache.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <stdexcept>

using namespace torch_ltc;

namespace {

struct Compilation {
  LtcBytes executable{};
  LtcCompileStatistics statistics{};
  StageTexts texts;
  Compilation() = default;
  Compilation(const Compilation &) = delete;
  ~Compilation() { ltcBytesDestroy(executable); }
};
using CompilationPtr = std::shared_ptr<Compilation>;

/// A stage may have several parts (one for each kernel).
void collectStage(const char *stage, const char *text, size_t size,
                  void *userData) {
  auto &texts = *static_cast<StageTexts *>(userData);
  if (texts.empty() || texts.back().first != stage)
    texts.emplace_back(stage, "");
  texts.back().second.append(text, size);
}

/// Option force_compile_failure.
void refuseListedOps(const GraphSnapshot &graph) {
  std::string list = config().force_compile_failure.get();
  if (list.empty())
    return;
  for (const SnapshotNode &node : graph.nodes)
    if (node.record && isOpListed(list, node.record->name))
      throw std::runtime_error(node.record->name +
                               " is rejected by option force_compile_failure" +
                               messageSuffix(node.location));
}

LtcCompileOptions compileOptions(bool withTexts, StageTexts &texts) {
  LtcCompileOptions options{};
  options.verify = config().verify.get();
  options.threads = at::get_num_threads();
  options.print_locations =
      config().dump_locations.get() && config().source_info.get();
  if (withTexts) {
    options.stage_text = collectStage;
    options.stage_user_data = &texts;
  }
  return options;
}

/// Fills `result` up to the point of failure.
void compile(const GraphSnapshot &graph, bool withTexts,
             const CompilationPtr &result) {
  refuseListedOps(graph);
  if (withTexts)
    result->texts.emplace_back("torch-raw", stageText(graph, "torch-raw"));
  const CompilerLibrary &library = compilerLibrary();
  auto program = std::make_shared<ProgramHandle>(library, entryName(graph));
  buildProgram(library, program->get(), graph);
  LtcCompileOptions options = compileOptions(withTexts, result->texts);
  auto status = std::make_shared<LtcStatus>(nullptr);
  runInterruptibly([&library, program, options, result, status] {
    *status = library.ltcProgramCompile(
        program->get(), &options, &result->executable, &result->statistics);
  });
  throwIfFailed(*status);
}

/// One executable for all sizes.
void compileGeneral(const std::shared_ptr<const GeneralSamples> &samples,
                    const CompilationPtr &result) {
  const CompilerLibrary &library = compilerLibrary();
  std::vector<std::shared_ptr<ProgramHandle>> handles;
  std::vector<LtcProgram> programs;
  auto sizes = std::make_shared<LtcSizeSamples>();
  sizes->num_symbols = samples->general->symbols().size();
  sizes->num_checked = samples->numbers[0].sizes.size();
  for (size_t i = 0; i < LTC_GENERAL_SAMPLES; ++i) {
    const GraphSnapshot &graph = samples->graphs[i];
    refuseListedOps(graph);
    handles.push_back(
        std::make_shared<ProgramHandle>(library, entryName(graph)));
    programs.push_back(handles.back()->get());
    buildProgram(library, programs.back(), graph);
    sizes->symbols[i] = samples->general->standIns()[i].data();
    sizes->checked[i] = samples->numbers[i].sizes.data();
  }
  LtcCompileOptions options =
      compileOptions(/*withTexts=*/false, result->texts);
  auto status = std::make_shared<LtcStatus>(nullptr);
  // An interrupted compilation goes on: it keeps all that it reads.
  runInterruptibly([&library, samples, handles, programs, sizes, options,
                    result, status] {
    *status = library.ltcProgramsCompileGeneral(programs.data(), sizes.get(),
                                                &options, &result->executable,
                                                &result->statistics);
  });
  throwIfFailed(*status);
}

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

void noteStatistics(const LtcCompileStatistics &statistics,
                    CompileEvent &event) {
  event.origin = "compiled";
  event.torchSeconds = statistics.torch_seconds;
  event.linalgSeconds = statistics.linalg_seconds;
  event.kernelsSeconds = statistics.kernels_seconds;
  event.llvmSeconds = statistics.llvm_seconds;
  event.kernels = int64_t(statistics.kernels);
  event.kernelsCompiled = int64_t(statistics.kernels_compiled);
  count(Counter::compilations);
  count(Counter::kernels_compiled, event.kernelsCompiled);
  count(Counter::kernel_cache_hits, event.kernels - event.kernelsCompiled);
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

/// Unless another process does, or has.
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

/// The substitute for a program that can't be compiled. Nothing is lost, so
/// this only warns; the caller stores the program, so it warns once for each.
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
  // These need a program immediately, or its error.
  return config().tier.get() == "auto" && !config().detect_nan.get() &&
         !config().lockstep.get() && config().dump.get().empty() &&
         config().compile_failure.get() != "raise";
}

/// An interpreted program, which the compiled one replaces when it is ready.
std::shared_ptr<PlaceholderProgram>
makePlaceholder(const GraphSnapshotPtr &graph, const Hash128 &hash,
                LocationId location, const CompileEvent &event) {
  return std::make_shared<PlaceholderProgram>(graph, [=] {
    compileInBackground([=] {
      CompileEvent compiled = event;
      ProgramPtr program;
      try {
        program = compileOnce(graph, hash, compiled);
      } catch (const std::exception &error) {
        if (areCompilationsCancelled())
          return;
        // The caller that would raise the error has continued.
        count(Counter::compile_failures);
        program = interpretInstead(graph, error.what(), location, compiled);
      }
      explainCompilation(compiled);
      addCompileEvent(compiled);
      replacePlaceholder(hash, graph->name, program);
      noteCompilerUse();
    });
  });
}

/// Sets the reason for a new program. The event doesn't keep the graphs that
/// are compared: they belong to programs.
void noteDifference(const GraphSnapshotPtr &graph, CompileEvent &event) {
  std::vector<GraphSnapshotPtr> known = keptGraphs();
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

/// Compares the graph with earlier ones that differ only in sizes.
Sighting noteSizes(const GraphSnapshotPtr &graph, CompileEvent &event) {
  Sighting sighting;
  if (config().varying_sizes.get() != "off")
    sighting = SkeletonMemory::get().note(graph);
  if (!sighting.reason.empty())
    event.reason += "; " + sighting.reason;
  if (sighting.general)
    for (size_t i = 0; i < sighting.general->symbols().size(); ++i)
      event.sizes.push_back(sighting.general->symbolText(i));
  return sighting;
}

/// Compiles the general graph; an event tells when it is done, or why there is
/// no such program.
void makeGeneral(const std::shared_ptr<const GeneralSamples> &samples,
                 CompileEvent event) {
  Stopwatch stopwatch;
  const GeneralGraph &general = *samples->general;
  Hash128 hash = GeneralPrograms::hashOf(general);
  event.program = hash.text();
  event.difference = nullptr;
  event.reason = "one program for all sizes";
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
  } catch (const std::exception &error) {
    GeneralPrograms::get().fail(general);
    if (areCompilationsCancelled())
      return;
    event.origin = "refused";
    event.reason = std::string("no program for all sizes: ") + error.what();
    log(LogLevel::Info, event.reason);
  }
  event.seconds = stopwatch.seconds();
  recordTime(Timer::compile, event.seconds);
  explainCompilation(event);
  addCompileEvent(event);
  noteCompilerUse();
}

/// The program for all sizes, bound to those of the graph; null if there is
/// none yet.
ProgramPtr bindGeneral(const GraphSnapshotPtr &graph, const Sighting &sighting,
                       CompileEvent &event) {
  if (!sighting.general)
    return nullptr;
  GeneralPrograms &programs = GeneralPrograms::get();
  if (config().tier.get() == "compile" && programs.begin(*sighting.general))
    makeGeneral(std::make_shared<GeneralSamples>(sighting.general), event);
  std::string reason;
  ProgramPtr program = programs.bind(graph, sighting, reason);
  if (!reason.empty())
    event.reason += "; " + reason;
  if (!program)
    return nullptr;
  program->isBound = true;
  event.origin = "bound";
  count(Counter::programs_bound);
  return program;
}

/// Starts to compile the program for all sizes, once programs of such graphs
/// have run for long.
void noteGeneralReuse(const GraphSnapshotPtr &graph, const Sighting &sighting,
                      const std::shared_ptr<InterpretedProgram> &next,
                      const CompileEvent &event) {
  if (!sighting.general)
    return;
  GeneralPrograms &programs = GeneralPrograms::get();
  double seconds = programs.noteInterpreted(*sighting.general, next);
  if (!isWorthCompiling(seconds / LTC_GENERAL_SAMPLES, *graph) ||
      !programs.begin(*sighting.general))
    return;
  auto samples = std::make_shared<GeneralSamples>(sighting.general);
  compileInBackground([samples, event] { makeGeneral(samples, event); });
}

/// For option lockstep: a graph outside of steps.
ProgramPtr compileApart(const GraphSnapshot &graph) {
  auto compilation = std::make_shared<Compilation>();
  compile(graph, /*withTexts=*/false, compilation);
  return std::make_shared<CompiledProgram>(
      std::make_shared<const GraphSnapshot>(graph),
      compilation->executable.data, compilation->executable.size);
}

/// Errors of a user-supplied backend aren't hidden by interpreting the program.
ProgramPtr makeExternal(const ExternalBackend &backend,
                        const GraphSnapshotPtr &graph, LocationId location,
                        CompileEvent &event) {
  Stopwatch stopwatch;
  ProgramPtr program;
  try {
    program = backend.compile(graph);
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
  event.origin = "compiled";
  event.seconds = stopwatch.seconds();
  count(Counter::compilations);
  recordTime(Timer::compile, event.seconds);
  return program;
}

} // namespace

ProgramPtr torch_ltc::makeProgram(GraphSnapshot snapshot, const Hash128 &hash,
                                  int64_t step, LocationId location,
                                  std::string &origin) {
  auto graph = std::make_shared<const GraphSnapshot>(std::move(snapshot));
  Stopwatch stopwatch;
  CompileEvent event;
  event.program = graph->name;
  event.step = step;
  event.location = shortText(location);
  noteDifference(graph, event);
  event.varying = takeVaryingNumbers();
  Sighting sighting = noteSizes(graph, event);
  event.ops = int64_t(graph->numOps);
  event.parameters = int64_t(graph->parameters.size());
  event.outputs = int64_t(graph->results.size());

  if (isForbidden(Forbidden::recompile))
    checkAllowed(Forbidden::recompile,
                 "A new program would be compiled: " +
                     (event.difference ? reasonOf(event)
                                       : "it is the process's first one"));
  at::RecordFunction span(at::RecordScope::FUNCTION);
  if (span.isActive())
    span.before("torch_ltc::compile");
  ProgramPtr program;
  ExternalBackendPtr backend = selectedBackend();
  try {
    std::string dumpFolder = config().dump.get();
    if (backend) {
      program = makeExternal(*backend, graph, location, event);
    } else if (config().tier.get() == "interpret") {
      event.origin = "interpreted";
      program = std::make_shared<InterpretedProgram>(graph);
    } else {
      // A program from the disk cache has no texts of its stages, so it is only
      // used if the dump already exists.
      if (!dumpFolder.empty())
        event.dumpDirectory = findDump(dumpFolder, graph->name);
      if (config().cache.get() &&
          (dumpFolder.empty() || !event.dumpDirectory.empty()) &&
          (!mayCompileLater() || mayHaveProgram(hash)))
        program = loadFromDisk(graph, hash, event);
      if (!program && dumpFolder.empty())
        program = bindGeneral(graph, sighting, event);
      if (!program && mayCompileLater()) {
        auto placeholder = makePlaceholder(graph, hash, location, event);
        noteGeneralReuse(graph, sighting, placeholder, event);
        program = placeholder;
        event.origin = "interpreted";
        event.reason += " (until its program is compiled)";
      }
      if (!program)
        program = dumpFolder.empty()
                      ? compileOnce(graph, hash, event)
                      : compileNew(graph, hash, dumpFolder, event);
    }
  } catch (const std::runtime_error &error) {
    count(Counter::compile_failures);
    raiseIfWanted(error.what(), location, event);
    program = interpretInstead(graph, error.what(), location, event);
  }
  if (config().detect_nan.get())
    program = std::make_shared<CheckedProgram>(program, graph);
  if (config().lockstep.get())
    program = std::make_shared<LockstepProgram>(
        program, graph, [backend](const GraphSnapshot &all) -> ProgramPtr {
          if (!backend)
            return compileApart(all);
          return backend->compile(std::make_shared<const GraphSnapshot>(all));
        });
  origin = event.origin;
  event.seconds = stopwatch.seconds();
  if (!program->isPlaceholder())
    explainCompilation(event);
  addCompileEvent(event);
  keepProgram({graph, program});
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
    // An interpreted program may be one that the compiler rejects.
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
