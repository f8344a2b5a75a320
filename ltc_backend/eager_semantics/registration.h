//===- registration.h - Kernels for eager's semantics -----------*- C++ -*-===//

#ifndef TORCH_LTC_EAGER_SEMANTICS_REGISTRATION_H
#define TORCH_LTC_EAGER_SEMANTICS_REGISTRATION_H

#include "tracing/boxed_kernels.h"

#include <torch/library.h>

namespace torch_ltc {

/// What lets ops of several threads take turns; see locked_ops.cpp.
void registerLockKey();

void registerAsStridedKernels(torch::Library &library);
void registerStorageViews(torch::Library &library);
/// At AutogradLazy.
void registerAutogradKernels(torch::Library &library);
void registerAsStridedAutograd(torch::Library &library);
/// At Meta, in front of what is registered there; see meta_shortcuts.cpp.
void registerMetaShortcuts();
/// At Meta, where errors of views come from; see view_errors.cpp.
void registerViewErrors();
/// At Functionalize, around what is registered there; see view_inverses.cpp.
void registerAsStridedOfMemory();
void registerViewInverses();
/// Of complex tensors; see math_bits.cpp and reinterpreting_views.cpp.
void registerMathBits();
void registerReinterpretingViews();
void registerViewCopies(const AtenOps &ops);
/// At Functionalize, for ops without a kernel there; see
/// inference_composites.cpp.
void registerInferenceComposites(const AtenOps &ops);
/// Around what is at Functionalize, that of sparse tensors included.
void registerOutKernels(const AtenOps &ops);
void registerInPlaceKernels(const AtenOps &ops);
/// Around what is at Functionalize; see other_devices.cpp.
void registerOtherDevices(const AtenOps &ops);
void registerOverlapChecks();
void registerShapesInPlace();
/// Of sparse tensors: what makes and moves them, and all other ops.
void registerSparseLayouts();
void registerSparseFallbacks(const AtenOps &ops);
/// Of quantised and nested tensors: what makes and moves them. The first one
/// registers all other ops.
void registerSharedFactories();
/// For tensors that functionalisation doesn't model, when there is a first one;
/// see passed_functionalization.cpp.
void registerPassedFunctionalization();
/// Of an op that may return a first tensor of the device; see
/// dispatch_modes.cpp.
void registerUnderModes(const c10::OperatorName &op);

} // namespace torch_ltc

#endif // TORCH_LTC_EAGER_SEMANTICS_REGISTRATION_H
