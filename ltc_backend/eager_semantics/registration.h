//===- registration.h - Kernels for eager's semantics -----------*- C++ -*-===//

#ifndef TORCH_LTC_EAGER_SEMANTICS_REGISTRATION_H
#define TORCH_LTC_EAGER_SEMANTICS_REGISTRATION_H

#include "tracing/boxed_kernels.h"

#include <torch/library.h>

namespace torch_ltc {

/// Serializes ops of several threads; see locked_ops.cpp.
void registerLockKey();

void registerAsStridedKernels(torch::Library &library);
void registerStorageViews(torch::Library &library);
/// Wraps `set_` at key Functionalize; see storage_views.cpp.
void registerStorageChanges();
/// Wraps view ops at key Functionalize; see own_sizes.cpp.
void registerOwnSizes(const AtenOps &ops);
/// Wraps the usual view ops at key Functionalize; see traced_views.cpp.
void registerTracedViews();
// These register kernels at key AutogradLazy, some of them also at key
// Functionalize, for inference_mode.
void registerAutogradKernels(torch::Library &library);
void registerAsStridedAutograd(torch::Library &library);
/// Wraps torch's kernels at key Meta; see meta_shortcuts.cpp.
void registerMetaShortcuts();
/// Wraps kernels at key Meta, where errors of views are raised; see
/// view_errors.cpp.
void registerViewErrors();
/// Wraps kernels at key Functionalize; see as_strided.cpp and
/// view_inverses.cpp.
void registerAsStridedOnStorage();
void registerViewInverses();
/// Registers kernels for conjugate and negative views, and for views with a
/// different dtype; see math_bits.cpp and reinterpreting_views.cpp.
void registerMathBits();
void registerReinterpretingViews();
/// Registers kernels at key AutogradLazy; see
/// value_dependent_gradients.cpp.
void registerValueDependentGradients();
void registerViewCopies(const AtenOps &ops);
/// Registers kernels at key Functionalize for ops without one; see
/// inference_composites.cpp.
void registerInferenceComposites(const AtenOps &ops);
/// These wrap kernels at key Functionalize, including those that
/// `registerSparseResults` has registered; see out_kernels.cpp and
/// in_place.cpp.
void registerOutKernels(const AtenOps &ops);
void registerInPlaceKernels(const AtenOps &ops);
/// Wraps kernels at keys AutogradLazy and Functionalize; see mixed_writes.cpp.
void registerMixedWrites();
/// Wraps kernels at key Functionalize; see operand_layouts.cpp.
void registerOperandLayouts();
/// Wraps kernels at key Functionalize; see other_devices.cpp.
void registerOtherDevices(const AtenOps &ops);
void registerFillsOfCpuTensors();
void registerOverlapChecks();
void registerInPlaceViewChecks();
/// Registers kernels that move and inspect sparse tensors, and kernels for
/// dense tensors that create sparse ones.
void registerSparseLayouts();
/// Registers the fallback for ops on sparse tensors that have no other kernel.
void registerSparseFallbacks();
void registerSparseResults();
/// Registers kernels that create and move quantized and nested tensors. The
/// kernels of all other ops are registered when the first such tensor is
/// created.
void registerSharedFactories();
/// Registers kernels that bypass functionalization. To be called when the first
/// tensor that functionalization doesn't model, or the first TorchDispatchMode,
/// is created; see passed_functionalization.cpp.
void registerPassedFunctionalization();
/// Registers kernels for views of wrapper subclasses. Called by
/// `registerPassedFunctionalization`; see memoryless_views.cpp.
void registerMemorylessViews();

} // namespace torch_ltc

#endif // TORCH_LTC_EAGER_SEMANTICS_REGISTRATION_H
