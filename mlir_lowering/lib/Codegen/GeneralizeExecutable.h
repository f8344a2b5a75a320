//===- GeneralizeExecutable.h - Numbers of a general form -------*- C++ -*-===//

#ifndef TORCH_LTC_LIB_CODEGEN_GENERALIZEEXECUTABLE_H
#define TORCH_LTC_LIB_CODEGEN_GENERALIZEEXECUTABLE_H

#include "torch_ltc/Codegen/NumberFitter.h"

#include "executable.pb.h"

#include <map>
#include <string>

namespace mlir::torch_ltc {

using BlocksOfKernels = std::map<unsigned, KernelBlocks>;

/// Changes the first of `samples`, the executables of one program at different
/// stand-ins, to a general executable (`GeneralForm`). `tables` contains the
/// codes of the numbers in each kernel's table, `work` the work of each kernel
/// (kWorkAttr), and `orders` the numbers of assumedOrders. The trip count of a
/// kernel in `blocks` is a multiple of its own number of blocks. Returns why
/// the program has no general form, or "".
std::string generalizeExecutable(
    const std::array<::torch_ltc::runtime::Executable *, kNumSamples> &samples,
    const GeneralNumbers &given,
    const std::vector<std::vector<NumberCode>> &tables,
    llvm::ArrayRef<SizeSamples> work, llvm::ArrayRef<SizeSamples> orders,
    const BlocksOfKernels &blocks, NumberFitter &fitter);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CODEGEN_GENERALIZEEXECUTABLE_H
