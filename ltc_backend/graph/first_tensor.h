//===- first_tensor.h - What waits for the first lazy tensor ----*- C++ -*-===//
//
// Most kernels, and most of what Python replaces in PyTorch, serve lazy tensors
// only. They are registered when the process creates its first one, so that
// programs that never do start faster.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_FIRST_TENSOR_H
#define TORCH_LTC_GRAPH_FIRST_TENSOR_H

namespace torch_ltc {

/// `hook` is called once, before the first lazy tensor is created.
void onFirstTensor(void (*hook)());
/// `hook` runs before that one, and must be idempotent: each thread that
/// creates a tensor while it runs calls it too, and continues when it returns.
/// It may wait for other threads in its own way, such as for Python's lock.
void beforeFirstTensor(void (*hook)());
/// Calls these hooks unless they have run.
void prepareFirstTensor();

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_FIRST_TENSOR_H
