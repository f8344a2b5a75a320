//===- registration.h - Kernels of the Lazy dispatch keys -------*- C++ -*-===//

#ifndef TORCH_LTC_TRACER_REGISTRATION_H
#define TORCH_LTC_TRACER_REGISTRATION_H

#include "tracer/boxed_kernels.h"

#include <torch/library.h>

namespace torch_ltc {

/// Registers what makes the first tensor of the device, at `import torch`.
void registerFirstKernels();
/// Registers a kernel for every other op at the Lazy key: traced, hand-written,
/// or the fallback. Called before the first tensor is made; later calls do
/// nothing.
void registerKernels();

/// What lets ops of several threads take turns; see locked_ops.cpp.
void registerLockKey();

// The hand-written kernels by concern.
void registerCopyKernels(torch::Library &library);
void registerFactoryKernels(torch::Library &library);
void registerListKernels(torch::Library &library);
void registerScalarKernels(torch::Library &library);
void registerRandomKernels(torch::Library &library);
void registerIndexingKernels(torch::Library &library);
void registerPoolingBackward(torch::Library &library);
void registerConvolutionKernels(torch::Library &library);
void registerHistogramKernels(torch::Library &library);
void registerAsStridedKernels(torch::Library &library);
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
/// `resize_` to a memory format; see copies.cpp.
void registerResizeToFormat();
/// At AutogradLazy.
void registerAutogradKernels(torch::Library &library);
void registerStorageViews(torch::Library &library);
void registerForeachKernels(const AtenOps &ops);
void registerAsStridedAutograd(torch::Library &library);
/// Long attention as one op; see attention.cpp.
void registerAttention(torch::Library &library);
/// A linear layer as one op; see linear.cpp.
void registerLinear(torch::Library &library);
/// An LSTM cell's gates as one op; see lstm_cell.cpp.
void registerLstmCell(torch::Library &library);
/// A CTC loss whose lengths are data; see ctc_loss.cpp.
void registerCtcLoss(torch::Library &library);
void registerCtcLossAutograd(torch::Library &library);
void registerViewCopies(const AtenOps &ops);
/// Around what is at Functionalize, that of sparse tensors included.
void registerOutKernels(const AtenOps &ops);
void registerInPlaceKernels(const AtenOps &ops);
void registerOverlapChecks();
void registerShapesInPlace();
/// At the autocast key of lazy tensors; see autocast.cpp.
void registerAutocastKernels(const AtenOps &ops);
/// Of sparse tensors: what makes and moves them, and all other ops.
void registerSparseLayouts();
void registerSparseFallbacks(const AtenOps &ops);
/// Of quantised and nested tensors: what makes and moves them, and all other
/// ops.
void registerSharedFactories();
void registerSharedFallbacks(const AtenOps &ops);
/// For tensors that functionalisation doesn't model, when there is a first one;
/// see passed_functionalization.cpp.
void registerPassedFunctionalization();
/// Of an op that may return a first tensor of the device; see
/// dispatch_modes.cpp.
void registerUnderModes(const c10::OperatorName &op);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACER_REGISTRATION_H
