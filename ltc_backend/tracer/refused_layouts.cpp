//===- refused_layouts.cpp - Tensors that device lazy doesn't have --------===//
//
// Every op that meets or would make a sparse, quantised or nested tensor of
// this device says so in one sentence; torch's own lists all kernels instead.
//
//===----------------------------------------------------------------------===//

#include "events/log.h"
#include "events/op_error.h"
#include "executor/live_tensors.h"
#include "source/source_location.h"
#include "tracer/registration.h"

#include <ATen/ops/embedding_dense_backward.h>

#include <mutex>

using namespace torch_ltc;
using c10::DispatchKey;

namespace {

class Refuse final : public c10::OperatorKernel {
public:
  explicit Refuse(const char *layout) : layout(layout) {}

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet,
                  torch::jit::Stack *) {
    std::string name = c10::toString(op.operator_name());
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "Device 'lazy' has no ", layout, " tensors, so ", name,
        " can't run there: compute this part on the CPU and move dense "
        "results with .to('lazy').",
        opSuffix(name));
  }

private:
  const char *layout;
};

/// A dense gradient has the same values as the sparse one.
at::Tensor embeddingSparseBackward(const at::Tensor &gradient,
                                   const at::Tensor &indices,
                                   int64_t numWeights, int64_t paddingIndex,
                                   bool scaleByFrequency) {
  static std::once_flag once;
  std::call_once(once, [] {
    log(LogLevel::Warning,
        "Device 'lazy' has no sparse tensors: the gradient of an embedding "
        "with sparse=True is dense there. SparseAdam refuses it; Adam, SGD "
        "and Adagrad take it." +
            messageSuffix(captureLocation()));
  });
  return at::embedding_dense_backward(gradient, indices, numWeights,
                                      paddingIndex, scaleByFrequency);
}

struct Layout {
  DispatchKey key;
  const char *name;
};

const Layout layouts[] = {{DispatchKey::SparseLazy, "sparse"},
                          {DispatchKey::SparseCsrLazy, "sparse"},
                          {DispatchKey::QuantizedLazy, "quantised"},
                          {DispatchKey::NestedTensorLazy, "nested"}};

/// Ops that get there by their options alone (torch 2.13): without a lazy
/// tensor and below those that torch composes.
const char *const factories[] = {"_efficientzerotensor",
                                 "_empty_affine_quantized",
                                 "_empty_per_channel_affine_quantized",
                                 "_sparse_coo_tensor_with_dims",
                                 "_sparse_coo_tensor_with_dims_and_tensors",
                                 "empty.memory_format",
                                 "empty_strided"};

/// Each of these four visits all ops of the dispatcher: more than half of what
/// device lazy would otherwise add to `import torch`. A dense lazy tensor is
/// part of whatever meets these layouts by their operands.
void registerFallbacks() {
  for (const Layout &layout : layouts) {
    auto *library = new torch::Library(torch::Library::IMPL, "_", layout.key,
                                       __FILE__, __LINE__);
    library->fallback(torch::CppFunction::makeFromBoxedFunctor(
        std::make_unique<Refuse>(layout.name)));
  }
}

} // namespace

void torch_ltc::registerRefusedLayouts() {
  auto *autograd =
      new torch::Library(torch::Library::IMPL, "aten",
                         DispatchKey::AutogradLazy, __FILE__, __LINE__);
  autograd->impl("embedding_sparse_backward",
                 TORCH_FN(embeddingSparseBackward));
  for (const Layout &layout : layouts) {
    auto *library = new torch::Library(torch::Library::IMPL, "aten", layout.key,
                                       __FILE__, __LINE__);
    for (const char *name : factories)
      library->impl(name, torch::CppFunction::makeFromBoxedFunctor(
                              std::make_unique<Refuse>(layout.name)));
  }
  onFirstTensor(registerFallbacks);
}
