//===- locked_ops.cpp - Ops in several threads ----------------------------===//
//
// Functionalization stores a tensor's value, and pending writes to its memory
// that its views haven't seen, in unguarded fields (torch 2.13). Reading a view
// updates these fields, so even two readers conflict. Eager PyTorch has no such
// fields. Therefore ops on lazy tensors are serialized as soon as a second
// thread has traced one; before that, a lock around each op would cost a tenth
// of the tracing time and guard nothing.
//
// All lazy tensors have the dispatch key `lockKey`. Ops fall through at this
// key until a second thread traces.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "execution/effects_turn.h"
#include "graph/live_tensors.h"
#include "memory/blocking.h"
#include "memory/lazy_device.h"
#include "tracing/boxed_kernels.h"
#include "tracing/writing_call.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

using namespace torch_ltc;

namespace {

/// Adds the traces of a tensor's value and of its base's value if these aren't
/// computed. Doesn't apply pending writes, which would trace ops.
void addPendingTraces(const at::Tensor &tensor, LiveSets &traces) {
  if (!isLazyWrapper(tensor))
    return;
  auto *wrapper =
      at::functionalization::impl::unsafeGetFunctionalWrapper(tensor);
  TensorDataPtr value = tensorDataOf(wrapper->value());
  TensorDataPtr base = tensorDataOf(functionalMemory(tensor).base());
  if (value && value->isPending())
    traces.push_back(value->traceSet());
  if (!wrapper->is_up_to_date() && base)
    traces.push_back(base->traceSet());
}

/// While another thread compiles a graph with collectives, its results must not
/// become operands: the collectives run once, and the graph's results become
/// data only after the compilation.
void waitForResults(const c10::OperatorHandle &op, torch::jit::Stack &stack) {
  auto arguments = torch::jit::last(stack, op.schema().arguments().size());
  while (EffectsTurn::isAnyTaken()) {
    LiveSets traces;
    anyTensor(arguments, [&](const at::Tensor &tensor) {
      addPendingTraces(tensor, traces);
      return false;
    });
    if (!EffectsTurn::isTakenByOther(traces))
      return;
    EffectsTurn::wait(traces);
  }
}

void lockedKernel(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
  std::lock_guard<TraceLock> lock(traceLock);
  waitForResults(op, *stack);
  c10::impl::ExcludeDispatchKeyGuard onlyTheOutermost(lockKey);
  op.redispatchBoxed(
      keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, lockKey),
      stack);
}

/// Registers the lock op by op: a fallback can't be replaced while other
/// threads dispatch ops, but an op that falls through can get a kernel.
void lockAllOps() {
  auto &dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName &name : dispatcher.getAllOpNames())
    if (dispatcher.findSchema(name))
      registerBoxedKernel(
          name, lockKey,
          c10::KernelFunction::makeFromBoxedFunction<&lockedKernel>());
}

} // namespace

void torch_ltc::registerLockKey() {
  auto *library = new torch::Library(torch::Library::IMPL, "_", lockKey,
                                     __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFallthrough());
  onSecondThread(lockAllOps);
}
