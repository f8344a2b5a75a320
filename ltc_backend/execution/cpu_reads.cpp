//===- cpu_reads.cpp - Values of CPU tensors that a step reads ------------===//

#include "execution/cpu_reads.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/flat_hash_map.h>

using namespace torch_ltc;

struct CpuReads::State {
  /// CPU tensors whose values may differ in the next call of the captured
  /// function. They are held, so that no address is reused.
  ska::flat_hash_map<c10::TensorImpl *, at::Tensor> changing;
  bool found = false;

  void add(const c10::IValue &value) {
    if (value.isTensor() && value.toTensor().defined() &&
        value.toTensor().is_cpu())
      changing.emplace(value.toTensor().unsafeGetTensorImpl(),
                       value.toTensor());
    else if (value.isTensorList())
      for (const at::Tensor &tensor : value.toTensorVector())
        add(tensor);
  }
  bool has(const c10::IValue &value) const {
    if (value.isTensor())
      return value.toTensor().defined() &&
             changing.count(value.toTensor().unsafeGetTensorImpl()) != 0;
    if (value.isTensorList())
      for (const at::Tensor &tensor : value.toTensorVector())
        if (has(tensor))
          return true;
    return false;
  }
};

namespace {

// The `CpuReads::State` of the thread, for RecordFunction callbacks, which have
// no state.
thread_local void *watching = nullptr;

/// The context of an op whose results may differ in the next call.
struct Changes final : at::ObserverContext {};

bool isRandom(const at::RecordFunction &function) {
  auto name = function.operator_name();
  if (!name)
    return false;
  auto op = c10::Dispatcher::singleton().findOp(*name);
  return op && op->hasSchema() && op->hasTag(at::Tag::nondeterministic_seeded);
}

} // namespace

CpuReads::CpuReads(const std::vector<at::Tensor> &arguments)
    : state(std::make_shared<State>()) {
  for (const at::Tensor &argument : arguments)
    state->add(argument);
  watching = state.get();
  handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(
          [](const at::RecordFunction &function)
              -> std::unique_ptr<at::ObserverContext> {
            auto *state = static_cast<State *>(watching);
            if (!state)
              return nullptr;
            bool reads = false;
            for (const c10::IValue &input : function.inputs())
              reads |= state->has(input);
            if (!reads && !isRandom(function))
              return nullptr;
            std::string_view name = function.name();
            if (reads && (name == "aten::_local_scalar_dense" ||
                          name == "aten::equal" || name == "aten::is_nonzero"))
              state->found = true;
            return std::make_unique<Changes>();
          },
          // A value computed from a changing value changes, too.
          [](const at::RecordFunction &function, at::ObserverContext *changes) {
            auto *state = static_cast<State *>(watching);
            if (state && changes)
              for (const c10::IValue &output : function.outputs())
                state->add(output);
          })
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION}));
}

bool CpuReads::found() const { return state->found; }

void CpuReads::close() {
  if (watching == state.get())
    watching = nullptr;
  if (handle)
    at::removeCallback(handle);
  handle = 0;
  state->changing.clear();
}
