//===- ltc-opt.cpp - The compiler's test driver ---------------------------===//
//
// mlir-opt with the project's dialects and passes. It reads a module at any
// stage, runs the passes of the command line, and prints the result.
//
//===----------------------------------------------------------------------===//

#include "Registration.h"
#include "torch_ltc/Kernels/TargetCostModel.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// Prints the stages of a program, with their pipelines and passes. LLVM's own
/// help, with the options of all MLIR passes, is printed by --help-hidden.
static void printHelp(llvm::raw_ostream &stream) {
  stream
      << "OVERVIEW: torch_ltc's compiler, pass by pass: reads a module, runs "
         "passes, prints it\n\n"
         "USAGE: ltc-opt file.mlir [passes and pipelines, in order] [-o "
         "file]\n\n"
         "Stages are those of torch_ltc.debug.dump and of dump folders. A "
         "pipeline goes from\n"
         "one to the next; its passes can be run one by one.\n";
  for (const StagePipeline &pipeline : stagePipelines()) {
    stream << "\n  " << pipeline.from << " -> " << pipeline.to << ":  --"
           << pipeline.name << "  (" << pipeline.summary << ")\n";
    for (const std::string &name : pipeline.passNames()) {
      const PassInfo *pass = PassInfo::lookup(name);
      stream << "      --" << llvm::left_justify(name, 36)
             << (pass ? pass->getPassDescription() : "") << "\n";
    }
  }
  stream
      << "\nOften used with it:\n"
         "  --canonicalize --cse               MLIR's clean-up\n"
         "  --ltc-mlir-specialize-sizes=sizes=s0=4,s1=6   the program of these "
         "sizes\n"
         "  --mlir-print-ir-after-all          the module after each pass\n"
         "  --mlir-print-debuginfo             Python lines and module paths\n"
         "  --mlir-timing                      time of each pass\n"
         "  --verify-diagnostics, --split-input-file   for tests\n"
         "  --print-target-cost-model          the numbers that kernels are "
         "planned with\n"
         "\n  --help-hidden lists everything, MLIR's own passes too.\n";
}

static void printCostModel(llvm::raw_ostream &stream) {
#define LTC_COST(name, value, help)                                            \
  stream << llvm::left_justify(#name, 24)                                      \
         << llvm::right_justify(std::to_string(TargetCostModel::name), 9)      \
         << "  " << help << "\n";
#include "torch_ltc/Kernels/TargetCostModel.def"
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  registerToolDialects(registry);
  registerToolPasses();
  for (int i = 1; i < argc; ++i)
    if (llvm::StringRef argument(argv[i]);
        argument == "--help" || argument == "-help" || argument == "-h") {
      printHelp(llvm::outs());
      return 0;
    } else if (argument == "--print-target-cost-model") {
      printCostModel(llvm::outs());
      return 0;
    }
  return asMainReturnCode(
      MlirOptMain(argc, argv, "torch_ltc compiler driver\n", registry));
}
