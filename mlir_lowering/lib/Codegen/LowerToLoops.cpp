//===- LowerToLoops.cpp - Lowering of kernels of fused ops to loops -------===//

#include "LoopEmitter.h"

#include "torch_ltc/Codegen/Passes.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_LOWERTOLOOPS
#include "torch_ltc/Codegen/Passes.h.inc"

namespace {

class LowerToLoops : public impl::LowerToLoopsBase<LowerToLoops> {
  void runOnOperation() override {
    for (auto kernel :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!isScheduled(kernel))
        continue;
      FailureOr<KernelSchedule> schedule = KernelSchedule::read(kernel);
      if (failed(schedule))
        return signalPassFailure();
      auto aliases = kernel->getAttrOfType<DenseI64ArrayAttr>(kAliasesAttr);
      LoopEmitter(kernel, *schedule,
                  aliases ? aliases.asArrayRef() : ArrayRef<int64_t>())
          .emit();
    }
  }
};

} // namespace
} // namespace mlir::torch_ltc
