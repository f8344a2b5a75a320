//===- out_checks.cpp - What eager refuses to write into `out=` -----------===//
//
// Functionalisation casts a result to the type of `out` and knows no memory
// that operands share (torch 2.13). Eager refuses both: a result whose type
// doesn't cast to that of `out`, and an elementwise op that writes into a part
// of what it reads (others: overlap_checks.cpp). These kernels look before
// PyTorch's own run.
//
//===----------------------------------------------------------------------===//

#include "ir/op_record.h"
#include "tracer/boxed_kernels.h"
#include "tracer/in_place.h"
#include "tracer/memory_overlap.h"
#include "tracer/registration.h"

#include <ATen/core/Tensor.h>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

class CheckedOut final : public c10::OperatorKernel {
public:
  CheckedOut(const OpRecord &functional, c10::SafeKernelFunction previous)
      : functional(functional), previous(std::move(previous)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = functional.arguments.size();
    auto arguments = torch::jit::last(*stack, numArguments + 1);
    if (arguments[numArguments].isTensor())
      check(arguments.slice(0, numArguments),
            arguments[numArguments].toTensor());
    previous.callBoxed(op, keys, stack);
  }

private:
  void check(c10::ArrayRef<IValue> arguments, const at::Tensor &out) const {
    checkWrittenDevice(out, arguments, functional.name);
    if (!out.defined() || !out.device().is_lazy())
      return;
    checkResultFits(functional, arguments, out.scalar_type());
    if (functional.family != Family::elementwise)
      return;
    checkWrittenOnce(out, functional.name);
    for (const IValue &argument : arguments)
      if (argument.isTensor())
        checkRead(out, argument.toTensor(), Overlap::Part, functional.name);
  }

  const OpRecord &functional;
  c10::SafeKernelFunction previous;
};

/// "aten::add.Tensor" -> "aten::add.out": the overload that takes the same
/// arguments and one more, which is written.
std::optional<OperatorHandle> outVariant(const OpRecord &record) {
  const c10::OperatorName &name = record.handle->operator_name();
  std::string own = name.overload_name.empty() ? "" : name.overload_name + "_";
  for (const std::string &overload : {own + "out", std::string("out")}) {
    auto op = c10::Dispatcher::singleton().findSchema({name.name, overload});
    if (!op || op->schema().returns().size() != 1)
      continue;
    const auto &arguments = op->schema().arguments();
    if (arguments.size() != record.arguments.size() + 1 ||
        !arguments.back().alias_info())
      continue;
    bool equal = true;
    for (size_t i = 0; i < record.arguments.size(); ++i)
      equal &= arguments[i].name() == record.arguments[i].name &&
               *arguments[i].type() ==
                   *record.handle->schema().arguments()[i].type();
    if (equal)
      return op;
  }
  return std::nullopt;
}

} // namespace

void torch_ltc::registerOutChecks() {
  for (const OpRecord &record : opRecords()) {
    if (record.numResults != 1 || record.returnsList ||
        !record.hasTensorArgument)
      continue;
    std::optional<OperatorHandle> op = outVariant(record);
    if (!op ||
        op->hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) ||
        op->hasKernelForDispatchKey(DispatchKey::AutogradLazy))
      continue;
    registerAround<CheckedOut>(*op, DispatchKey::AutogradLazy, record);
  }
}
