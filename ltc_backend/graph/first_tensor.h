//===- first_tensor.h - Hooks before the first lazy tensor ------*- C++ -*-===//
//
// Most kernels, and most of what Python replaces in PyTorch, serve lazy tensors
// only. They are registered when the process creates its first lazy tensor, so
// that programs without lazy tensors start faster.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_FIRST_TENSOR_H
#define TORCH_LTC_GRAPH_FIRST_TENSOR_H

namespace torch_ltc {

/// `hook` is called once, before the first lazy tensor is created.
void onFirstTensor(void (*hook)());
/// `hook` is called before the one of `onFirstTensor`, and must be idempotent:
/// while it runs, each other thread that creates a tensor calls it too. It may
/// wait for other threads (for example, for the GIL).
void beforeFirstTensor(void (*hook)());
/// Calls both hooks, unless they have run.
void prepareFirstTensor();

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_FIRST_TENSOR_H
