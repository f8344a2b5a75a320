//===- registration.h - Kernels of the Lazy dispatch keys -------*- C++ -*-===//

#ifndef TORCH_LTC_TRACER_REGISTRATION_H
#define TORCH_LTC_TRACER_REGISTRATION_H

#include "tracer/boxed_kernels.h"

#include <torch/library.h>

#include <string>
#include <vector>

namespace torch_ltc {

/// Registers a kernel for every op at the Lazy key: traced, hand-written, or
/// the fallback. Once per process.
void registerKernels();

// The hand-written kernels by concern; each returns the names it has taken.
std::vector<std::string> registerCopyKernels(torch::Library &library);
std::vector<std::string> registerFactoryKernels(torch::Library &library);
std::vector<std::string> registerListKernels(torch::Library &library);
std::vector<std::string> registerScalarKernels(torch::Library &library);
std::vector<std::string> registerRandomKernels(torch::Library &library);
std::vector<std::string> registerIndexingKernels(torch::Library &library);
std::vector<std::string> registerAsStridedKernels(torch::Library &library);
/// At Meta, in front of what is registered there; see meta_shortcuts.cpp.
void registerMetaShortcuts();
/// At Meta, where errors of views come from; see view_errors.cpp.
void registerViewErrors();
/// At Functionalize, around what is registered there; see view_inverses.cpp.
void registerViewInverses();
/// At AutogradLazy.
void registerAutogradKernels(torch::Library &library);
void registerForeachKernels(const AtenOps &ops);
void registerAsStridedAutograd(torch::Library &library);
/// An LSTM cell's gates as one op; see lstm_cell.cpp.
void registerLstmCell(torch::Library &library);
void registerViewCopies(const AtenOps &ops);
void registerOutChecks();
/// At the autocast key of lazy tensors; see autocast.cpp.
void registerAutocastKernels(const AtenOps &ops);
/// Of sparse tensors: what makes and moves them now, all other ops with the
/// first lazy tensor.
void registerSparseLayouts();
void registerSparseFallbacks();
/// Of tensors that the device doesn't have: quantised, nested. What makes them
/// now, and all that may meet them with the first lazy tensor.
void registerRefusedLayouts();

} // namespace torch_ltc

#endif // TORCH_LTC_TRACER_REGISTRATION_H
