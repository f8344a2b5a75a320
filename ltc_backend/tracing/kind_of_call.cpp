//===- kind_of_call.cpp - Kinds of calls of a formula ---------------------===//

#include "tracing/kind_of_call.h"

#include "config/config.h"
#include "graph/live_tensors.h"
#include "ir/trace_environment.h"
#include "tracing/argument_walk.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <bit>

using namespace torch_ltc;
using c10::IValue;
using c10::OperatorHandle;

namespace {

/// `addAll` returns false if the formula may depend on more than is hashed.
class KindHash {
public:
  bool addAll(c10::ArrayRef<IValue> values) {
    for (const IValue &value : values)
      if (!add(value))
        return false;
    return true;
  }
  Hash128 finish(const OperatorHandle &op) {
    state.add(uint64_t(reinterpret_cast<uintptr_t>(&op.schema())));
    state.add(TraceEnvironment::current().hash());
    state.add(configVersion());
    return state.finish();
  }

private:
  enum Kind : uint64_t {
    None = 1,
    Missing,
    OfTensor,
    Bool,
    Int,
    Double,
    Text,
    List,
    OfDevice
  };

  bool add(const IValue &value) {
    if (value.isNone())
      state.add(None);
    else if (value.isTensor())
      return add(value.toTensor());
    else if (value.isBool())
      addPair(Bool, value.toBool());
    else if (value.isInt())
      addPair(Int, uint64_t(value.toInt()));
    else if (value.isDouble())
      addPair(Double, std::bit_cast<uint64_t>(value.toDouble()));
    else if (value.isDevice())
      addPair(OfDevice, uint64_t(value.toDevice().type()));
    else if (value.isString())
      addText(value.toStringRef());
    else if (value.isList())
      return addList(value.toListRef());
    else
      return false; // a generator, a complex or a symbolic number
    return true;
  }

  bool add(const at::Tensor &tensor) {
    if (!tensor.defined()) {
      state.add(Missing);
      return true;
    }
    if (!tensor.device().is_lazy() || tensor.layout() != c10::kStrided ||
        !isSupportedDType(tensor.scalar_type()))
      return false;
    addPair(OfTensor, uint64_t(tensor.scalar_type()));
    state.add(uint64_t(tensor.dim()));
    for (int64_t size : tensor.sizes())
      state.add(uint64_t(size));
    for (int64_t stride : tensor.strides())
      state.add(uint64_t(stride));
    state.add(uint64_t(tensor.storage_offset()));
    state.add(tensor.is_inference() |
              tensor.unsafeGetTensorImpl()->is_wrapped_number() << 1);
    // A formula identifies operands by their data, so it matters which
    // operands share data.
    const TensorData *data = tensorDataOf(tensor).get();
    size_t first = std::ranges::find(seen, data) - seen.begin();
    state.add(first);
    seen.push_back(data);
    return true;
  }

  bool addList(c10::ArrayRef<IValue> elements) {
    addPair(List, elements.size());
    return addAll(elements);
  }

  void addText(const std::string &text) {
    state.add(Text);
    state.add(hashBytes(text.data(), text.size(), /*seed=*/1));
  }

  void addPair(Kind kind, uint64_t word) {
    state.add(kind);
    state.add(word);
  }

  HashState state{3};
  c10::SmallVector<const TensorData *, 4> seen;
};

} // namespace

std::optional<Hash128>
torch_ltc::hashKindOfCall(const OperatorHandle &op,
                          c10::ArrayRef<IValue> arguments) {
  KindHash hash;
  if (!hash.addAll(arguments))
    return std::nullopt;
  return hash.finish(op);
}
