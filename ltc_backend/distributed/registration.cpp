//===- registration.cpp - Kernels for torch.distributed's ops -------------===//
//
// "c10d::..." ops write to tensors without declaring the writes in their
// schemas, and return a Work. "_c10d_functional::..." ops call "c10d::..." ops
// on new tensors and store the Work, with the tensor's storage as its key,
// until `wait_tensor` is called. Lazy tensors use torch's own kernels of the
// functional ops, and our kernels of the "c10d::..." ops that these call.
//
//===----------------------------------------------------------------------===//

#include "distributed/registration.h"

#include "config/config.h"
#include "distributed/c10d_calls.h"
#include "distributed/collective_faults.h"
#include "distributed/collective_ops.h"
#include "distributed/lazy_work.h"
#include "execution/recording.h"
#include "graph/live_tensors.h"
#include "tracing/boxed_kernels.h"
#include "tracing/wrapped_value.h"
#include "tracing/writing_call.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace functional = at::functionalization::impl;

namespace {

using Tensors = std::vector<Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

void appendTensors(const IValue &value, Tensors &tensors) {
  if (value.isTensor())
    tensors.push_back(value.toTensor());
  else if (value.isList())
    for (const IValue &element : value.toListRef())
      appendTensors(element, tensors);
}

bool isOfLazyTensors(c10::ArrayRef<IValue> arguments) {
  Tensors tensors;
  for (const IValue &argument : arguments)
    appendTensors(argument, tensors);
  return std::any_of(tensors.begin(), tensors.end(), isLazyWrapper);
}

/// Assigns each output its part of `value`.
void assign(const Tensors &outputs, const Tensor &value) {
  if (Recording *recording = Recording::current())
    for (const Tensor &output : outputs)
      recording->noteReceiver(output);
  if (outputs.size() == 1)
    return writeResult(outputs[0], value);
  Tensor whole = functional::to_functional_tensor(value);
  int64_t begin = 0;
  for (const Tensor &output : outputs) {
    Tensor part = whole.narrow(0, begin, output.numel()).view(output.sizes());
    writeResult(output, valueOf(part));
    begin += output.numel();
  }
}

/// Makes the chain of collectives wait for a collective without outputs, which
/// has no reader that would wait for it.
void waitInOrder(const CallPart &part, const StartedCollective &started) {
  traceCollective({"await",
                   part.collective.group,
                   {-1},
                   functional::to_functional_tensor(started.started),
                   {0}});
}

WorkPtr start(std::vector<CallPart> parts) {
  Tensors outputs;
  std::vector<StartedCollective> started;
  std::function<int()> source;
  for (CallPart &part : parts) {
    outputs.insert(outputs.end(), part.outputs.begin(), part.outputs.end());
    started.push_back(traceStart(part.collective));
    part.collective.input = Tensor();
    if (part.collective.kind == "receive_any")
      source = [number = started.back().started] {
        runTracedCollectives("Work._source_rank");
        int64_t value =
            functional::to_functional_tensor(number).item<int64_t>();
        return sourceOfCollective(value);
      };
  }
  auto finish = [parts = std::move(parts), started = std::move(started)] {
    at::AutoDispatchBelowADInplaceOrView below;
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i].outputs.empty())
        waitInOrder(parts[i], started[i]);
      else
        assign(parts[i].outputs, traceWait(started[i]));
  };
  return c10::make_intrusive<LazyWork>(std::move(outputs), std::move(finish),
                                       std::move(source));
}

WorkPtr run(const C10dCall &call) {
  Tensors outputs;
  for (const CallPart &part : call.parts) {
    assign(part.outputs, traceCollective(part.collective));
    outputs.insert(outputs.end(), part.outputs.begin(), part.outputs.end());
  }
  return c10::make_intrusive<LazyWork>(std::move(outputs), nullptr);
}

/// The argument with its tensors copied to the CPU.
IValue onCpu(const IValue &value) {
  if (value.isTensor())
    return value.toTensor().defined() ? value.toTensor().cpu()
                                      : value.toTensor();
  if (!value.isList() || value.isIntList())
    return value;
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor &tensor : value.toTensorVector())
      list.push_back(tensor.cpu());
    return list;
  }
  c10::impl::GenericList list(value.toList().elementType());
  for (const IValue &element : value.toListRef())
    list.push_back(onCpu(element));
  return list;
}

/// Begins eager's kernel immediately, for arguments that can't be traced: the
/// kernel supports or rejects them.
WorkPtr runEagerly(const OperatorHandle &op, c10::ArrayRef<IValue> arguments) {
  runTracedCollectives(op.schema().name());
  Stack stack;
  for (const IValue &argument : arguments)
    stack.push_back(onCpu(argument));
  Tensors outputs, values;
  if (op.schema().name() != "c10d::send") {
    appendTensors(arguments[0], outputs);
    appendTensors(stack[0], values);
  }
  op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), &stack);
  if (stack.empty()) // monitored_barrier_
    return nullptr;
  auto work = stack.back().toCustomClass<c10d::Work>();
  auto source = [work] { return work->sourceRank(); };
  auto finish = [outputs, values, work] {
    {
      BlockingScope blocking;
      work->wait();
    }
    at::AutoDispatchBelowADInplaceOrView below;
    for (size_t i = 0; i < outputs.size(); ++i)
      outputs[i].copy_(values[i]);
  };
  return c10::make_intrusive<LazyWork>(std::move(outputs), std::move(finish),
                                       std::move(source));
}

/// Replaces the arguments of a "c10d" op by its results.
void returnWork(const OperatorHandle &op, Stack *stack, const WorkPtr &work) {
  size_t numArguments = op.schema().arguments().size();
  IValue outputs = torch::jit::peek(*stack, 0, numArguments);
  torch::jit::drop(*stack, numArguments);
  for (const c10::Argument &result : op.schema().returns())
    stack->push_back(result.type()->kind() == c10::TypeKind::ClassType
                         ? IValue(work)
                         : outputs);
}

/// The kernel of a "c10d" op at key Functionalize, for lazy tensors.
class LazyCollective final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, DispatchKeySet keys, Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    std::vector<IValue> arguments =
        torch::jit::last(*stack, numArguments).vec();
    if (!isOfLazyTensors(arguments))
      return previous.callBoxed(op, keys, stack);
    at::AutoDispatchBelowADInplaceOrView below;
    auto call = readCall(op.schema().name(), arguments);
    WorkPtr work = !call           ? runEagerly(op, arguments)
                   : call->isAsync ? start(std::move(call->parts))
                                   : run(*call);
    returnWork(op, stack, work);
  }
};

/// The kernel of a "c10d" op of sparse tensors. The fallback for other ops on
/// sparse tensors doesn't copy the results back, because the schema doesn't
/// declare that the op writes to its arguments.
void sparseCollective(const OperatorHandle &op, Stack *stack) {
  at::AutoDispatchBelowADInplaceOrView below;
  auto arguments =
      torch::jit::last(*stack, op.schema().arguments().size()).vec();
  returnWork(op, stack, runEagerly(op, arguments));
}

/// The kernel of a "_c10d_functional" op at key Functionalize. Runs torch's own
/// kernel on the user's tensors and immediately waits for its results; this
/// wait is only traced. torch's deferred wait can't be used: its wrapper can't
/// contain the device's functional tensors (2.13).
class FunctionalCollective final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, DispatchKeySet keys, Stack *stack) {
    if (!isOfLazyTensors(
            torch::jit::last(*stack, op.schema().arguments().size())))
      return previous.callBoxed(op, keys, stack);
    at::AutoDispatchBelowADInplaceOrView below;
    op.callBoxedForDispatchKey(DispatchKey::CompositeExplicitAutograd, *stack);
    Tensors results;
    appendTensors(stack->back(), results);
    for (const Tensor &result : results)
      wait(result);
  }

private:
  static void wait(const Tensor &tensor) {
    static const OperatorHandle op =
        findOp({"_c10d_functional::wait_tensor", ""});
    Stack stack = {tensor};
    op.callBoxedForDispatchKey(DispatchKey::CompositeExplicitAutograd, stack);
  }
};

/// The kernel of a collective of CPU tensors, at key CPU. Runs the traced
/// collectives first: the call blocks the thread, and other ranks may need them
/// to reach the same call.
class CpuCollective final : public KernelAround {
public:
  CpuCollective(const std::string &name, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)),
        isMessage(name == "c10d::send" || name == "c10d::recv_" ||
                  name == "c10d::recv_any_source_") {}

  void operator()(const OperatorHandle &op, DispatchKeySet keys, Stack *stack) {
    const auto &arguments = op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].type() == c10::getCustomClassType<ProcessGroupPtr>())
        prepare(torch::jit::peek(*stack, i, arguments.size())
                    .toCustomClass<c10d::ProcessGroup>(),
                op.schema().name());
    previous.callBoxed(op, keys, stack);
  }

private:
  void prepare(const ProcessGroupPtr &group, const std::string &name) const {
    runTracedCollectives(group, name);
    if (config().check_collectives.get() && !isMessage)
      checkRanksAgree(nameCpuCollective(name, group));
  }

  bool isMessage;
};

} // namespace

void torch_ltc::registerCollectives() {
  registerHostCollective();
  SilentRegistration silent;
  for (const OperatorHandle &op : opsOf({"_c10d_functional::"}))
    if (op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd))
      registerAround<FunctionalCollective>(op, DispatchKey::Functionalize);
  for (const OperatorHandle &op : opsOf({"c10d::"}))
    if (op.hasKernelForDispatchKey(DispatchKey::CPU)) {
      registerAround<LazyCollective>(op, DispatchKey::Functionalize);
      registerAround<CpuCollective>(op, DispatchKey::CPU,
                                    op.operator_name().name);
      for (DispatchKey key :
           {DispatchKey::SparseLazy, DispatchKey::SparseCsrLazy})
        registerBoxedKernel(
            op.operator_name(), key,
            c10::KernelFunction::makeFromBoxedFunction<&sparseCollective>());
    }
}
