//===- DeduplicateKernels.cpp - One kernel for equal structure ------------===//

#include "torch_ltc/Kernels/Passes.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/xxhash.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_DEDUPLICATEKERNELS
#include "torch_ltc/Kernels/Passes.h.inc"

namespace {

/// Returns the kernel's text with a fixed name and without locations. Kernels
/// of equal structure have equal texts, because SSA names are numbered from the
/// start of the function.
std::string structureOf(func::FuncOp kernel) {
  StringAttr name = kernel.getSymNameAttr();
  kernel.setSymName("kernel");
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().useLocalScope());
  kernel.setSymNameAttr(name);
  return text;
}

class DeduplicateKernels
    : public impl::DeduplicateKernelsBase<DeduplicateKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringMap<StringAttr> nameOfStructure;
    DenseMap<StringAttr, StringAttr> renamed;
    for (auto kernel :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!kernel.isPrivate() || kernel.isDeclaration())
        continue;
      StringAttr oldName = kernel.getSymNameAttr();
      std::string text = structureOf(kernel);
      auto [entry, isNew] = nameOfStructure.try_emplace(text);
      if (isNew) {
        llvm::XXH128_hash_t hash = llvm::xxh3_128bits(llvm::ArrayRef(
            reinterpret_cast<const uint8_t *>(text.data()), text.size()));
        std::string name = "k_" + llvm::utohexstr(hash.high64, true, 16);
        entry->second = StringAttr::get(&getContext(), name);
        kernel.setSymNameAttr(entry->second);
      } else {
        kernel.erase();
      }
      renamed[oldName] = entry->second;
    }
    module.walk([&](ltc::KernelCallOp call) {
      StringAttr name = call.getCalleeAttr().getAttr();
      if (auto it = renamed.find(name); it != renamed.end())
        call.setCalleeAttr(FlatSymbolRefAttr::get(it->second));
    });
  }
};

} // namespace
} // namespace mlir::torch_ltc
