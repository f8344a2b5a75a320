//===- compilation.cpp - One run of the compiler --------------------------===//

#include "compilation/compilation.h"

#include "compilation/general_programs.h"
#include "compilation/interruptible_work.h"
#include "compilation/program_builder.h"
#include "config/config.h"
#include "events/metrics.h"

#include <ATen/Parallel.h>

#include <stdexcept>

using namespace torch_ltc;

namespace {

/// Appends a part of a stage's text. Some stages have a part for each kernel.
void collectStage(const char *stage, const char *text, size_t size,
                  void *userData) {
  auto &texts = *static_cast<StageTexts *>(userData);
  if (texts.empty() || texts.back().first != stage)
    texts.emplace_back(stage, "");
  texts.back().second.append(text, size);
}

/// Throws if the graph has an op that option force_compile_failure lists.
void rejectListedOps(const GraphSnapshot &graph) {
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

} // namespace

void torch_ltc::compile(const GraphSnapshot &graph, bool withTexts,
                        const CompilationPtr &result) {
  rejectListedOps(graph);
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

void torch_ltc::compileGeneral(
    const std::shared_ptr<const GeneralSamples> &samples,
    const CompilationPtr &result) {
  const CompilerLibrary &library = compilerLibrary();
  std::vector<std::shared_ptr<ProgramHandle>> handles;
  std::vector<LtcProgram> programs;
  auto sizes = std::make_shared<LtcSizeSamples>();
  sizes->num_symbols = samples->general->symbols().size();
  sizes->num_checked = samples->checked[0].size();
  for (size_t i = 0; i < LTC_GENERAL_SAMPLES; ++i) {
    const GraphSnapshot &graph = samples->graphs[i];
    rejectListedOps(graph);
    handles.push_back(std::make_shared<ProgramHandle>(
        library, entryName(graph), i ? handles[0].get() : nullptr));
    programs.push_back(handles.back()->get());
    buildProgram(library, programs.back(), graph);
    sizes->symbols[i] = samples->general->standIns()[i].data();
    sizes->checked[i] = samples->checked[i].data();
  }
  LtcCompileOptions options =
      compileOptions(/*withTexts=*/false, result->texts);
  auto status = std::make_shared<LtcStatus>(nullptr);
  // An interrupted compilation continues, so it owns everything that it reads.
  runInterruptibly([&library, samples, handles, programs, sizes, options,
                    result, status] {
    *status = library.ltcProgramsCompileGeneral(programs.data(), sizes.get(),
                                                &options, &result->executable,
                                                &result->statistics);
  });
  throwIfFailed(*status);
}

void torch_ltc::noteStatistics(const LtcCompileStatistics &statistics,
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
