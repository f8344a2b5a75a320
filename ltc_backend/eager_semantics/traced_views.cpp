//===- traced_views.cpp - Views, without functionalization's kernels ------===//
//
// Functionalization's kernel of a view (torch 2.13) also runs the op on Meta
// tensors, for its errors and for the result's strides, and dispatches the
// view's copying op; together, these are most of a view's cost. The tracer
// finds errors and strides itself, so the kernels here trace the copy directly,
// and make the same wrapper. Calls with operands that aren't plain lazy
// tensors, and calls that the tracer rejects, go to the previous kernel.
//
//===----------------------------------------------------------------------===//

#include "compilation/external_backend.h"
#include "eager_semantics/own_sizes.h"
#include "eager_semantics/registration.h"
#include "fallback/eager_fallback.h"
#include "graph/live_tensors.h"
#include "shape/shape_inference.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"
#include "tracing/writing_call.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/stack.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <utility>

using namespace torch_ltc;
using at::Tensor;
using at::functionalization::ViewMeta;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace functional = at::functionalization::impl;

namespace {

/// A view op and its copying variant.
struct TracedView {
  TracedView(OperatorHandle view, const OpRecord &copy,
             c10::SafeKernelFunction previous)
      : view(std::move(view)), copy(copy), previous(std::move(previous)) {}

  OperatorHandle view;
  const OpRecord &copy;
  c10::SafeKernelFunction previous;
};

using Numbers = c10::SmallVector<IValue, 4>;

Tensor call(const OperatorHandle &op, Stack stack) {
  op.callBoxed(&stack);
  return std::move(stack[0]).toTensor();
}

/// The record of a view in a functional wrapper: the op and its arguments after
/// the tensor.
struct RecordedView final : ViewMeta {
  RecordedView(const TracedView &op, c10::ArrayRef<IValue> numbers)
      : ViewMeta(/*has_symbolic_inputs=*/false), op(op),
        numbers(numbers.begin(), numbers.end()) {}

  Tensor forward(const Tensor &base) override {
    return call(*op.copy.handle, withNumbers({base}));
  }

  Tensor reverse(const Tensor &base, const Tensor &mutated) override {
    Tensor value = inverse(base, mutated);
    keepGeometry(value, base); // restores the strides of dims of size 1
    return value;
  }

private:
  /// Returns the new value of the base. For the usual views, calls the op that
  /// torch's inverse calls (2.13); for others, torch's inverse itself.
  Tensor inverse(const Tensor &base, const Tensor &mutated) const {
    static const OperatorHandle squeeze = findOp({"aten::squeeze_copy", "dim"}),
                                select = findOp({"aten::select_scatter", ""}),
                                slice = findOp({"aten::slice_scatter", ""});
    switch (op.copy.shapeRule) {
    case ShapeRule::viewShape:
      return call(*op.copy.handle, {mutated, base.sizes().vec()});
    case ShapeRule::transposeShape:
    case ShapeRule::tShape:
      return call(*op.copy.handle, withNumbers({mutated}));
    case ShapeRule::unsqueezeShape:
      return call(squeeze, withNumbers({mutated}));
    case ShapeRule::selectShape:
      return call(select, withNumbers({base, mutated}));
    case ShapeRule::sliceShape:
      return call(slice, withNumbers({base, mutated}));
    default:
      return recordOfTorch(base)->reverse(base, mutated);
    }
  }

  Stack withNumbers(Stack stack) const {
    stack.insert(stack.end(), numbers.begin(), numbers.end());
    return stack;
  }

  /// The record that the previous kernel creates.
  std::shared_ptr<ViewMeta> recordOfTorch(const Tensor &base) const {
    Stack stack = withNumbers({functional::to_functional_tensor(base)});
    op.previous.callBoxed(op.view, c10::DispatchKeySet(), &stack);
    return functional::unsafeGetFunctionalWrapper(stack[0].toTensor())
        ->view_metas()
        .back();
  }

  const TracedView &op; // belongs to a kernel, which is never destroyed
  Numbers numbers;
};

bool isSymbolic(const IValue &value) {
  return value.isSymInt() || value.isSymIntList();
}

/// Whether the strides of `value` permit a view with the sizes `shape`, of
/// which one may be -1.
bool isViewable(const Tensor &value, const at::DimVector &shape) {
  return isPacked(value) ||
         at::detail::computeStride(value.sizes(), value.strides(),
                                   at::infer_size_dv(shape, value.numel()));
}

/// The kernel of a view op at key Functionalize, which traces the op's copy.
class TracedViewKernel final : public c10::OperatorKernel {
public:
  template <typename... Arguments>
  explicit TracedViewKernel(Arguments &&...arguments)
      : traced(std::forward<Arguments>(arguments)...) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = traced.copy.arguments.size();
    if (!trace(*stack, torch::jit::last(*stack, numArguments)))
      traced.previous.callBoxed(op, keys, stack);
  }

private:
  bool isPlain(c10::ArrayRef<IValue> arguments) const {
    const Tensor &self = arguments[0].toTensor();
    if (!isLazyWrapper(self) || self.is_inference() ||
        c10::InferenceMode::is_enabled() || c10::impl::dispatch_mode_enabled())
      return false;
    const c10::DispatchKeySet excluded =
        c10::impl::tls_local_dispatch_key_set().excluded_;
    if (excluded.has(DispatchKey::PythonTLSSnapshot) ||
        functional::getFunctionalizationReapplyViewsTLS())
      return false;
    for (const IValue &number : arguments.slice(1))
      if (isSymbolic(number))
        return false;
    return !isFallbackForced(traced.copy.name) &&
           !isUnsupportedByBackend(traced.copy.emitName);
  }

  bool trace(Stack &stack, c10::ArrayRef<IValue> arguments) const {
    if (!isPlain(arguments))
      return false;
    const Tensor self = arguments[0].toTensor();
    functional::sync(self);
    Numbers inside(arguments.begin(), arguments.end());
    inside[0] = functional::from_functional_tensor(self);
    const Tensor &value = inside[0].toTensor();
    if (value.key_set().has(DispatchKey::Functionalize) ||
        (traced.copy.shapeRule == ShapeRule::viewShape &&
         !isViewable(value, arguments[1].toDimVector())))
      return false; // the Meta kernel raises the error
    Tensor view;
    {
      c10::impl::ExcludeDispatchKeyGuard guard(DispatchKey::Functionalize);
      view = traceView(traced.copy, inside);
    }
    if (!view.defined())
      return false;
    useOwnSizes(self);
    Tensor wrapper = at::detail::make_tensor<at::FunctionalTensorWrapper>(
        view, functional::unsafeGetFunctionalWrapper(self),
        std::make_shared<RecordedView>(traced, arguments.slice(1)));
    noteView(wrapper, self);
    torch::jit::drop(stack, arguments.size());
    stack.emplace_back(std::move(wrapper));
    return true;
  }

  TracedView traced;
};

} // namespace

void torch_ltc::registerTracedViews() {
  SilentRegistration silence;
  for (const c10::OperatorName &name :
       std::initializer_list<c10::OperatorName>{{"aten::view", ""},
                                                {"aten::expand", ""},
                                                {"aten::permute", ""},
                                                {"aten::transpose", "int"},
                                                {"aten::t", ""},
                                                {"aten::unsqueeze", ""},
                                                {"aten::squeeze", ""},
                                                {"aten::squeeze", "dim"},
                                                {"aten::squeeze", "dims"},
                                                {"aten::select", "int"},
                                                {"aten::slice", "Tensor"},
                                                {"aten::diagonal", ""}})
    if (const OpRecord *copy = copyRecord(name)) {
      OperatorHandle view = findOp(name);
      registerAround<TracedViewKernel>(view, DispatchKey::Functionalize, view,
                                       *copy);
    }
}
