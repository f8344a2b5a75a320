//===- registration.h - Hand-written kernels of ops -------------*- C++ -*-===//

#ifndef TORCH_LTC_OPS_REGISTRATION_H
#define TORCH_LTC_OPS_REGISTRATION_H

#include "tracing/boxed_kernels.h"

#include <torch/library.h>

namespace torch_ltc {

// Kernels at key Lazy.
void registerCopyKernels(torch::Library &library);
void registerFactoryKernels(torch::Library &library);
void registerListKernels(torch::Library &library);
void registerScalarKernels(torch::Library &library);
void registerRandomKernels(torch::Library &library);
void registerIndexingKernels(torch::Library &library);
void registerPoolingBackward(torch::Library &library);
/// Must be called after the kernels that trace are registered; see
/// nearest_scales.cpp.
void registerNearestScales();
void registerConvolutionKernels(torch::Library &library);
void registerHistogramKernels(torch::Library &library);
/// Products of groups of rows as one op; see grouped_products.cpp.
void registerGroupedProducts(torch::Library &library);
/// A CTC loss whose lengths are data; see ctc_loss.cpp.
void registerCtcLoss(torch::Library &library);

// Kernels at keys SparseLazy and SparseCsrLazy.
/// Ops on sparse tensors whose results have known sizes; see sparse.cpp.
void registerTracedSparseOps();

// Kernels at key AutogradLazy.
void registerOneHot();
/// Gradients of `x[mask] = values`; see masked_write.cpp.
void registerMaskedWrites();
void registerQuantiles();
/// Attention as one op; see attention.cpp.
void registerAttention();
/// A linear layer as one op; see linear.cpp.
void registerLinear(torch::Library &library);
/// An LSTM cell's gates as one op; see lstm_cell.cpp.
void registerLstmCell(torch::Library &library);
/// LSTM, GRU and RNN layers as one op per direction; see recurrence.cpp.
void registerRecurrence(torch::Library &library);
void registerCtcLossAutograd(torch::Library &library);
void registerForeachKernels(const AtenOps &ops);

/// `unsafe_split`, `tensor_split` and similar ops; see lists.cpp.
void registerSplits();
/// `new_empty_strided` on memory with gaps; see factories.cpp.
void registerNewEmptyStrided();
/// `resize_` and `resize_as_`; see copies.cpp.
void registerResizeInMemory();

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_REGISTRATION_H
