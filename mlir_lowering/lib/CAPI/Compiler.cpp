//===- Compiler.cpp - The compiler's handle -------------------------------===//

#include "ProgramStorage.h"
#include "torch_ltc/Codegen/CompileLinalgModule.h"
#include "torch_ltc/Dialect/Stablehlo/StablehloDialect.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Support/UserLocation.h"

using namespace mlir;
using namespace mlir::torch_ltc;

LtcCompilerContext::LtcCompilerContext()
    : context(MLIRContext::Threading::DISABLED) {
  context.setThreadPool(pool);
  DialectRegistry registry;
  registry.insert<func::FuncDialect, stablehlo::StablehloDialect,
                  torch::TorchDialect>();
  registerCodegenDialects(registry);
  context.appendDialectRegistry(registry);
  // Load all dialects now: a pass that loads one while another thread compiles
  // would modify the context concurrently.
  context.loadAllAvailableDialects();
}

std::shared_ptr<LtcCompilerContext> LtcCompilerStorage::get() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!current)
    current = std::make_shared<LtcCompilerContext>();
  return current;
}

void LtcCompilerStorage::releaseMemory() {
  std::shared_ptr<LtcCompilerContext> old;
  std::lock_guard<std::mutex> lock(mutex);
  std::swap(old, current); // `old` is destroyed after the unlock
}

LtcStatus ltcCompilerCreate(LtcCompiler *compiler) {
  *compiler = new LtcCompilerStorage;
  return nullptr;
}

void ltcCompilerDestroy(LtcCompiler compiler) { delete compiler; }

void ltcCompilerReleaseMemory(LtcCompiler compiler) {
  compiler->releaseMemory();
}

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
        // Don't repeat the user's line in a message that already contains it.
        std::string line = describeUserLocation(diagnostic.getLocation());
        if (!line.empty() && !StringRef(errors).contains(line))
          errors += " (" + line + ")";
        return success();
      }) {}

std::string DiagnosticCollector::text(const Twine &fallback) const {
  return errors.empty() ? fallback.str() : errors;
}
