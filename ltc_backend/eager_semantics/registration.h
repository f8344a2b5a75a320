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
/// `set_` at Functionalize; see storage_views.cpp.
void registerStorageChanges();
/// Wraps views at Functionalize; see own_sizes.cpp.
void registerOwnSizes(const AtenOps &ops);
/// At Functionalize, in front of the kernels of the usual views; see
/// traced_views.cpp.
void registerTracedViews();
/// At AutogradLazy.
void registerAutogradKernels(torch::Library &library);
void registerAsStridedAutograd(torch::Library &library);
/// At Meta, in front of the registered kernels; see meta_shortcuts.cpp.
void registerMetaShortcuts();
/// At Meta, where errors of views are raised; see view_errors.cpp.
void registerViewErrors();
/// At Functionalize, wrapping the registered kernels; see view_inverses.cpp.
void registerAsStridedOfMemory();
void registerViewInverses();
/// For complex tensors; see math_bits.cpp and reinterpreting_views.cpp.
void registerMathBits();
void registerReinterpretingViews();
/// At AutogradLazy; see product_gradient.cpp.
void registerProducts();
void registerViewCopies(const AtenOps &ops);
/// At Functionalize, for ops without a kernel there; see
/// inference_composites.cpp.
void registerInferenceComposites(const AtenOps &ops);
/// Wraps the kernels at Functionalize, including those of sparse tensors.
void registerOutKernels(const AtenOps &ops);
void registerInPlaceKernels(const AtenOps &ops);
/// Around what is at Functionalize; see other_devices.cpp.
void registerOtherDevices(const AtenOps &ops);
void registerOverlapChecks();
void registerShapesInPlace();
/// For sparse tensors: ops that move and inspect them, and ops of dense tensors
/// that create them. The first sparse tensor registers all other ops.
void registerSparseLayouts();
void registerSparseResults();
/// For quantized and nested tensors: ops that create and move them. The first
/// such tensor registers all other ops.
void registerSharedFactories();
/// For tensors that functionalization doesn't model and modes, when the first
/// one is created; see passed_functionalization.cpp.
void registerPassedFunctionalization();
/// At the same time: views of wrapper subclasses; see memoryless_views.cpp.
void registerMemorylessViews();

} // namespace torch_ltc

#endif // TORCH_LTC_EAGER_SEMANTICS_REGISTRATION_H
