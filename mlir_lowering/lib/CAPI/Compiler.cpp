//===- Compiler.cpp - The compiler's handle -------------------------------===//

#include "ProgramStorage.h"
#include "torch_ltc/Codegen/CompileLinalgModule.h"
#include "torch_ltc/Dialect/Stablehlo/StablehloDialect.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Support/UserLocation.h"

using namespace mlir;
using namespace mlir::torch_ltc;

LtcCompilerStorage::LtcCompilerStorage()
    : context(MLIRContext::Threading::DISABLED) {
  context.setThreadPool(pool);
  DialectRegistry registry;
  registry.insert<func::FuncDialect, stablehlo::StablehloDialect,
                  torch::TorchDialect>();
  registerCodegenDialects(registry);
  context.appendDialectRegistry(registry);
  // Now, since passes that load dialects while another thread compiles would
  // change the context under it.
  context.loadAllAvailableDialects();
}

LtcStatus ltcCompilerCreate(LtcCompiler *compiler) {
  *compiler = new LtcCompilerStorage;
  return nullptr;
}

void ltcCompilerDestroy(LtcCompiler compiler) { delete compiler; }

void ltcCompilerSetKernelCache(LtcCompiler compiler,
                               const LtcKernelCache *cache) {
  compiler->kernelCache = cache ? *cache : LtcKernelCache{};
}

LtcStatus torch_ltc::makeStatus(const Twine &message) {
  return ltcStatusCreate(message.str().c_str());
}

DiagnosticCollector::DiagnosticCollector(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) -> LogicalResult {
        if (std::this_thread::get_id() != thread)
          return failure();
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return success();
        if (!errors.empty())
          errors += '\n';
        errors += diagnostic.str();
        // Messages that already name the user's line don't need it twice.
        std::string line = describeUserLocation(diagnostic.getLocation());
        if (!line.empty() && !StringRef(errors).contains(line))
          errors += " (" + line + ")";
        return success();
      }) {}

std::string DiagnosticCollector::text(const Twine &fallback) const {
  return errors.empty() ? fallback.str() : errors;
}
