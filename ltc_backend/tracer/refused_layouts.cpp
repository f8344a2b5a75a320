//===- refused_layouts.cpp - Tensors that device lazy doesn't have --------===//
//
// Every op that meets or would make a nested tensor of this device says so in
// one sentence; torch's own lists all kernels instead.
//
//===----------------------------------------------------------------------===//

#include "events/op_error.h"
#include "tracer/registration.h"

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

struct Layout {
  DispatchKey key;
  const char *name;
};

const Layout layouts[] = {{DispatchKey::NestedTensorLazy, "nested"}};

/// Ops that get there by their options alone (torch 2.13): without a lazy
/// tensor and below those that torch composes.
const char *const factories[] = {"_efficientzerotensor",
                                 "_empty_affine_quantized",
                                 "_empty_per_channel_affine_quantized",
                                 "empty.memory_format", "empty_strided"};

} // namespace

void torch_ltc::registerRefusedLayouts() {
  for (const Layout &layout : layouts) {
    auto *library = new torch::Library(torch::Library::IMPL, "aten", layout.key,
                                       __FILE__, __LINE__);
    for (const char *name : factories)
      library->impl(name, torch::CppFunction::makeFromBoxedFunctor(
                              std::make_unique<Refuse>(layout.name)));
  }
}

void torch_ltc::registerRefusedFallbacks() {
  for (const Layout &layout : layouts) {
    auto *library = new torch::Library(torch::Library::IMPL, "_", layout.key,
                                       __FILE__, __LINE__);
    library->fallback(torch::CppFunction::makeFromBoxedFunctor(
        std::make_unique<Refuse>(layout.name)));
  }
}
