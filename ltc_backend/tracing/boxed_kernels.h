//===- boxed_kernels.h - Registration of many boxed kernels -----*- C++ -*-===//

#ifndef TORCH_LTC_TRACING_BOXED_KERNELS_H
#define TORCH_LTC_TRACING_BOXED_KERNELS_H

#include <ATen/core/dispatch/Dispatcher.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace torch_ltc {

/// All ops that have a schema and whose name starts with one of `namespaces`
/// ("aten::").
std::vector<c10::OperatorHandle>
opsOf(std::initializer_list<std::string_view> namespaces);

/// All ops of namespace aten. Each call of `atenOps` makes a new list, so a
/// caller that registers kernels several times passes one list to all
/// registrations.
using AtenOps = std::vector<c10::OperatorHandle>;
AtenOps atenOps();

/// The op's name as text: "aten::add.Tensor". (c10::toString uses a stream,
/// which takes a tenth of the time of a registration.)
std::string textOf(const c10::OperatorName &name);

/// Registers a kernel for an existing op, for the lifetime of the process.
/// torch::Library parses the op's name with TorchScript's lexer, which is most
/// of the cost of thousands of registrations; this function uses the name
/// unchanged.
void registerBoxedKernel(const c10::OperatorName &name, c10::DispatchKey key,
                         c10::KernelFunction kernel);

/// The op of that name. Throws c10::Error if there is none.
c10::OperatorHandle findOp(const c10::OperatorName &name);

/// Whether the op generates random numbers.
bool drawsNumbers(const c10::OperatorHandle &op);

/// The base of kernels that wrap the kernel `previous`.
class KernelAround : public c10::OperatorKernel {
public:
  explicit KernelAround(c10::SafeKernelFunction previous)
      : previous(std::move(previous)) {}

protected:
  c10::SafeKernelFunction previous;
};

/// Registers a `Kernel` that wraps the current kernel of `op` at `key`. The
/// constructor of `Kernel` gets `arguments`, followed by the current kernel.
template <typename Kernel, typename... Arguments>
void registerAround(const c10::OperatorHandle &op, c10::DispatchKey key,
                    Arguments &&...arguments) {
  registerBoxedKernel(
      op.operator_name(), key,
      c10::KernelFunction::makeFromBoxedFunctor(
          std::make_unique<Kernel>(std::forward<Arguments>(arguments)...,
                                   op.getComputedKernelForDispatchKey(key))));
}

/// While such an object exists, torch doesn't warn about replaced kernels (2.13
/// warns about each).
class SilentRegistration {
  struct Silence final : c10::WarningHandler {
    void process(const c10::Warning &) override {}
  };

  Silence silence;
  c10::WarningUtils::WarningHandlerGuard guard{&silence};
};

/// Registers a `Kernel` that wraps the kernels of `op` above autograd and,
/// because autograd's keys are off in inference mode, at Functionalize.
template <typename Kernel, typename... Arguments>
void registerAroundInAnyMode(const c10::OperatorHandle &op,
                             const Arguments &...arguments) {
  SilentRegistration silence; // the op may have kernels of this backend
  for (c10::DispatchKey key :
       {c10::DispatchKey::AutogradLazy, c10::DispatchKey::Functionalize})
    registerAround<Kernel>(op, key, arguments...);
}

/// Registers `function` for a composite op: above autograd and, because
/// autograd's keys are off in inference mode, at Functionalize. At
/// Functionalize, `function` also gets tensors of other devices, for which it
/// must do what torch's composite kernel does.
template <auto &function> void registerComposite(const char *name) {
  for (c10::DispatchKey key :
       {c10::DispatchKey::AutogradLazy, c10::DispatchKey::Functionalize})
    registerBoxedKernel(
        {std::string("aten::") + name, ""}, key,
        c10::KernelFunction::makeFromUnboxedFunction(TORCH_FN(function)));
}

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_BOXED_KERNELS_H
