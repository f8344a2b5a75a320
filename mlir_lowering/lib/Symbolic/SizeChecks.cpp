//===- SizeChecks.cpp - Checks of the sizes of a traced program -----------===//

#include "torch_ltc/Symbolic/UnifyModules.h"

#include "executable.pb.h"

#include "torch_ltc/Codegen/NumberFitter.h"

using namespace mlir;
using namespace mlir::torch_ltc;
namespace runtime = ::torch_ltc::runtime;

FailureOr<std::string>
mlir::torch_ltc::sizeChecks(ModuleOp module, ArrayRef<SymbolicSize> symbols,
                            ArrayRef<SizeSamples> checked) {
  SmallVector<SizeSamples> standIns = llvm::map_to_vector(
      symbols, [](const SymbolicSize &symbol) { return symbol.standIns; });
  NumberFitter fitter(standIns);
  for (const SizeSamples &size : checked)
    fitter.addSize(size);
  runtime::GeneralForm form;
  for (const SizeSamples &size : checked) {
    NumberCode code{runtime::CONSTANT, size[0]};
    if (!llvm::all_equal(size)) {
      std::optional<NumberCode> found = fitter.fit(size);
      if (!found)
        return module.emitError("the program has no form for all sizes: a size "
                                "of a traced value isn't a known function of "
                                "those that vary");
      code = std::move(*found);
    }
    form.mutable_numbers()->Add()->mutable_code()->Assign(code.begin(),
                                                          code.end());
    form.add_checks(form.numbers_size() - 1);
  }
  form.mutable_largest_sizes()->Resize(int(symbols.size()), INT64_MAX);
  return form.SerializeAsString();
}
