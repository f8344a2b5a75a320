//===- writing_call.cpp - A call that writes, run eagerly -----------------===//

#include "tracing/writing_call.h"

#include "events/op_error.h"
#include "fallback/cpu_autocast.h"
#include "fallback/eager_fallback.h"
#include "graph/live_tensors.h"
#include "shape/strides.h"
#include "tracing/trace.h"
#include "tracing/wrapped_value.h"

#include <ATen/EmptyTensor.h>
#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <cstring>
#include <list>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace functional = at::functionalization::impl;

namespace {

/// Whether the argument is written, or returned as a view.
bool isAliased(const c10::Argument &argument) {
  return argument.alias_info() != nullptr;
}

c10::StorageImpl *storageOf(const Tensor &wrapper) {
  return wrapper.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

/// The memory from a tensor's first to its last element, in units of
/// `itemsize`.
size_t spanOf(const Tensor &tensor, size_t itemsize) {
  return at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(),
                                          itemsize);
}

/// Returns a copy of a CPU tensor that has its strides, also if elements of the
/// tensor share memory.
Tensor copyOfMemory(const Tensor &tensor) {
  // In pooled memory, whose pages exist already: allocating them would take
  // longer than the copy.
  Tensor memory =
      HostData::copyOf(tensor.as_strided({int64_t(spanOf(tensor, 1))}, {1},
                                         tensor.storage_offset()))
          ->sharedTensor();
  return at::empty({0}, tensor.options())
      .set_(memory.storage(), 0, tensor.sizes(), tensor.strides());
}

/// Whether `tensor` still has the value of `before`, which had the same
/// strides.
bool isUnchanged(const Tensor &tensor, const Tensor &before) {
  return tensor.sizes() == before.sizes() &&
         tensor.strides() == before.strides() &&
         std::memcmp(tensor.const_data_ptr(), before.const_data_ptr(),
                     spanOf(before, before.element_size())) == 0;
}

/// A call of a CPU kernel that writes to its arguments. The whole memory of a
/// written tensor is copied, so that the copies on the CPU have the arguments'
/// strides and share memory as the arguments do. A kernel may also write to
/// arguments that the op's schema doesn't declare as written: such an argument
/// is copied, too (with its whole memory only if another argument shares it),
/// and gets the copy's value if it has changed.
class WritingCall {
public:
  WritingCall(const OperatorHandle &op, Stack &stack)
      : op(op), stack(stack),
        begin(stack.size() - op.schema().arguments().size()) {}

  void run(const std::string &reason) {
    unwrapArguments();
    runFallback(op, stack, reason,
                [this](const OperatorHandle &, Stack &) { runOnCpu(); });
    for (Memory &memory : memories)
      if (!memory.isDeclared) {
        if (!isUnchanged(memory.onCpu, memory.value))
          writeCopy(memory.whole, memory.onCpu);
      } else if (memory.value.sizes() == memory.whole.sizes())
        writeResult(memory.whole, memory.value); // keeps the tensor's strides
      else
        setValue(memory.whole, memory.value);
    // Releases the memories, because a tensor that is resized must not share
    // its memory.
    memories.clear();
    for (const Place &place : places)
      finish(place);
    wrapResults();
  }

private:
  /// The memory of a written argument, which other arguments may share.
  struct Memory {
    Memory(const Tensor &wrapper, bool isDeclared)
        : whole(wholeMemory(wrapper)), storage(storageOf(wrapper)),
          isDeclared(isDeclared), value(valueOf(whole)) {
      if (isDeclared) // a copy, because another tensor may have the same value
        value = traceOp("aten::clone", {value});
    }

    Tensor whole;
    c10::StorageImpl *storage;
    /// Whether the schema declares that an argument in this memory is written.
    bool isDeclared;
    Tensor value;
    /// If it isn't declared: the copy that the arguments share. `value` is then
    /// replaced by the value on the CPU.
    Tensor onCpu;
  };

  /// A tensor argument and its copy on the CPU; `visit` is the tensor's index
  /// among the tensors of all arguments. `memory` is null if the argument isn't
  /// declared as written and shares no memory with others; then `before` is its
  /// value on the CPU.
  struct Place {
    size_t visit;
    Tensor wrapper;
    Memory *memory;
    bool isWritten, isInList;
    Tensor onCpu = {}, before = {};
    /// The version of `onCpu` before the call.
    int64_t version = 0;
    /// Whether an earlier argument is the same tensor.
    bool isRepeated = false;

    bool isAloneAndChanged() const {
      return !memory && !isRepeated && !isUnchanged(onCpu, before);
    }
  };

  /// A result, which is the argument `wrapper` or, if `onCpu` is defined, a
  /// view of it; `visit` is its index among the results.
  struct Returned {
    size_t visit;
    Tensor wrapper;
    Tensor onCpu = {};
    /// Whether the memory of `onCpu` begins with the argument's first element.
    bool beginsAtArgument = false;
  };

  Memory *memoryOf(const Tensor &wrapper) {
    for (Memory &memory : memories)
      if (memory.storage == storageOf(wrapper))
        return &memory;
    return nullptr;
  }

  /// Notes the memories of arguments that are declared as written, and those
  /// that several arguments share.
  void findMemories() {
    const auto &arguments = op.schema().arguments();
    for (bool isDeclared : {true, false}) {
      std::vector<Tensor> others;
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (isAliased(arguments[i]) != isDeclared)
          continue;
        mapTensors(stack[begin + i], [&](const Tensor &tensor) {
          if (!isLazyWrapper(tensor) || memoryOf(tensor))
            return tensor;
          bool isShared = std::ranges::any_of(others, [&](const Tensor &other) {
            return storageOf(other) == storageOf(tensor) &&
                   !other.is_same(tensor);
          });
          if (isDeclared || isShared)
            memories.emplace_back(tensor, isDeclared);
          others.push_back(tensor);
          return tensor;
        });
      }
    }
  }

  void unwrapArguments() {
    findMemories();
    const auto &arguments = op.schema().arguments();
    size_t visit = 0;
    for (size_t i = 0; i < arguments.size(); ++i)
      stack[begin + i] =
          mapTensors(stack[begin + i], [&](const Tensor &tensor) {
            size_t here = visit++;
            if (!isLazyWrapper(tensor))
              return tensor;
            Memory *memory = memoryOf(tensor);
            bool isInList =
                arguments[i].is_out() && stack[begin + i].isTensorList();
            places.push_back({here, tensor, memory,
                              isWrittenArgument(arguments[i]), isInList});
            return memory ? memory->value : valueOf(tensor);
          });
  }

  /// The part of the memory's copy that corresponds to the argument, with the
  /// argument's bits, because the memory has the elements of its base.
  Tensor partOf(const Tensor &copy, const Place &place) const {
    Tensor part = elementsOf(copy, place);
    if (place.wrapper.is_neg() || place.wrapper.is_conj()) {
      part = part.is_same(copy) ? at::alias(copy) : part;
      part._set_neg(place.wrapper.is_neg());
      part._set_conj(place.wrapper.is_conj());
    }
    return part;
  }

  Tensor elementsOf(const Tensor &copy, const Place &place) const {
    const Tensor &whole = place.memory->whole, &wrapper = place.wrapper;
    bool isWhole = wrapper.sizes() == whole.sizes() &&
                   wrapper.strides() == whole.strides();
    if (!whole.is_non_overlapping_and_dense() || !wrapper.has_storage()) {
      TORCH_CHECK(isWhole, op.schema().name(),
                  " would write to a view of a tensor that has gaps between "
                  "its elements: call it on a clone() of the view.",
                  opSuffix(op.schema().name()));
      return copy;
    }
    int64_t offset = wrapper.sym_storage_offset().expect_int() -
                     whole.sym_storage_offset().expect_int();
    return at::empty({0}, copy.options().dtype(wrapper.scalar_type()))
        .set_(copy.storage(), offset, wrapper.sizes(), wrapper.strides());
  }

  /// Arguments that are one tensor have one copy: eager's kernels don't resize
  /// an `out` that is also read, which they recognize by its identity.
  Tensor copyOf(const Tensor &value, std::list<Place>::iterator place) {
    for (auto other = places.begin(); other != place; ++other)
      if (other->wrapper.is_same(place->wrapper)) {
        place->isRepeated = true;
        return other->onCpu;
      }
    if (!place->memory) {
      place->before = value;
      return copyOfMemory(value);
    }
    Memory &memory = *place->memory;
    if (memory.isDeclared)
      return partOf(value, *place);
    if (!memory.onCpu.defined()) {
      memory.value = value;
      memory.onCpu = copyOfMemory(value);
    }
    return partOf(memory.onCpu, *place);
  }

  void runOnCpu() {
    size_t visit = 0;
    auto place = places.begin();
    for (size_t i = begin; i < stack.size(); ++i)
      stack[i] = mapTensors(stack[i], [&](const Tensor &tensor) {
        if (place == places.end() || place->visit != visit++)
          return tensor;
        place->onCpu = copyOf(tensor, place);
        place->version = versionOf(place->onCpu);
        return (place++)->onCpu;
      });
    {
      CpuAutocast autocast;
      c10::DispatchKeySet keys(DispatchKey::CPU);
      for (const Place &written : places) {
        if (written.onCpu.is_neg())
          keys = keys.add(DispatchKey::Negative);
        if (written.onCpu.is_conj())
          keys = keys.add(DispatchKey::Conjugate);
      }
      op.redispatchBoxed(keys, &stack);
    }
    visit = 0;
    for (size_t i = begin; i < stack.size(); ++i)
      stack[i] = mapTensors(stack[i], [&](const Tensor &result) {
        return separate(result, visit++);
      });
  }

  /// If the result is an argument or a view of one, notes the result in
  /// `returned` and returns an undefined tensor, because the result must not
  /// become a new tensor. A view with a different dtype, or with bits, is
  /// copied.
  Tensor separate(const Tensor &result, size_t visit) {
    auto same = std::ranges::find_if(places, [&](const Place &place) {
      return place.onCpu.is_same(result);
    });
    if (same != places.end()) {
      returned.push_back({visit, same->wrapper});
      return Tensor();
    }
    if (!result.defined() || !result.has_storage())
      return result;
    bool isView = false;
    for (const Place &place : places) {
      if (!result.storage().is_alias_of(place.onCpu.storage()))
        continue;
      isView = true;
      if (result.scalar_type() != place.wrapper.scalar_type() ||
          result.is_conj() || result.is_neg())
        continue;
      returned.push_back({visit, place.wrapper, result, !place.memory});
      return Tensor();
    }
    return isView ? result.clone() : result;
  }

  /// The result is a view of a copy of the user's tensor. Returns the same view
  /// of the tensor itself.
  static Tensor viewFor(const Returned &view) {
    if (!view.onCpu.defined())
      return view.wrapper;
    const Tensor first =
        view.beginsAtArgument ? view.wrapper : wholeMemory(view.wrapper);
    int64_t begin = first.sym_storage_offset().expect_int();
    return view.wrapper.as_strided(view.onCpu.sizes(), view.onCpu.strides(),
                                   begin + view.onCpu.storage_offset());
  }

  static void writeCopy(const Tensor &wrapper, const Tensor &onCpu) {
    Tensor value = makeTensor(HostData::copyOf(onCpu));
    setGeometry(value, onCpu.strides());
    writeResult(wrapper, std::move(value));
  }

  void finish(const Place &place) const {
    if (place.isAloneAndChanged() ||
        (place.isWritten && // a resized `out=`
         place.onCpu.sizes() != place.wrapper.sizes()))
      writeCopy(place.wrapper, place.onCpu);
    if (!place.isWritten)
      return countWrites(place);
    // torch's kernels at ADInplaceOrView don't count writes to lists passed as
    // `out=` (2.13).
    bool isCounted = !place.isInList &&
                     op.hasKernelForDispatchKey(DispatchKey::ADInplaceOrView);
    if (!isCounted && !place.wrapper.is_inference())
      place.wrapper.unsafeGetTensorImpl()->bump_version();
  }

  /// Increments the version of an argument that isn't declared as written by
  /// the number of ops that wrote to it.
  void countWrites(const Place &place) const {
    if (place.isRepeated || place.wrapper.is_inference())
      return;
    for (int64_t n = versionOf(place.onCpu); n > place.version; --n)
      place.wrapper.unsafeGetTensorImpl()->bump_version();
  }

  void wrapResults() {
    size_t visit = 0;
    auto argument = returned.begin();
    for (size_t i = begin; i < stack.size(); ++i)
      stack[i] = mapTensors(stack[i], [&](const Tensor &result) {
        if (argument != returned.end() && argument->visit == visit++)
          return viewFor(*argument++);
        bool isInside = result.defined() && result.device().is_lazy();
        return isInside ? functional::to_functional_tensor(result) : result;
      });
  }

  const OperatorHandle &op;
  Stack &stack;
  size_t begin;
  std::list<Memory> memories;
  std::list<Place> places;
  std::list<Returned> returned;
};

/// Gives `tensor` the sizes and strides of `value`, within the tensor's memory
/// if other tensors share that memory.
void resizeFor(const Tensor &tensor, const Tensor &value) {
  leavePythonStorage(tensor);
  bool isBase = functional::isBaseTensor(tensor);
  if (isBase && tensor.storage().use_count() == 1)
    return; // `setValue` also sets the sizes
  int64_t offset = tensor.sym_storage_offset().expect_int(), end = offset;
  for (int64_t dim = 0; dim < value.dim() && value.numel(); ++dim)
    end += (value.size(dim) - 1) * value.stride(dim);
  if (!value.numel() || end < functionalMemory(tensor).base().numel()) {
    at::AutoDispatchBelowADInplaceOrView below;
    tensor.as_strided_(value.sizes(), value.strides(), offset);
    return;
  }
  // The result of `torch.tensor` and `detach` is a view of a tensor that may be
  // gone. In that case, no other tensor sees that the memory is replaced.
  if (!isBase && tensor.storage().use_count() == 1) {
    replaceViewRecords(tensor, {});
    isBase = true;
  }
  TORCH_CHECK(isBase, "A view of sizes ", tensor.sizes(),
              " would be resized to ", value.sizes(),
              ", beyond the memory of its base, which device 'lazy' doesn't "
              "support: pass a tensor that isn't a view.",
              opSuffix("aten::resize_"));
  functional::unsafeGetFunctionalWrapper(tensor)->maybe_replace_storage(value);
}

} // namespace

bool torch_ltc::isLazyWrapper(const Tensor &tensor) {
  return tensor.defined() && tensor.device().is_lazy() &&
         functional::isFunctionalTensor(tensor) &&
         !functional::from_functional_tensor(tensor).key_set().has(
             DispatchKey::Python);
}

void torch_ltc::runWritingCall(const OperatorHandle &op, Stack &stack,
                               const std::string &reason) {
  WritingCall(op, stack).run(reason);
}

void torch_ltc::writeResult(const Tensor &tensor, Tensor value) {
  if (value.scalar_type() != tensor.scalar_type())
    value = traceOp("aten::_to_copy",
                    {value, IValue(int64_t(tensor.scalar_type()))});
  if (value.sizes() != tensor.sizes())
    resizeFor(tensor, value);
  if (value.sizes() == tensor.sizes() &&
      (value.strides() != tensor.strides() ||
       value.storage_offset() != tensor.sym_storage_offset().expect_int())) {
    value = withValueOf(value);
    setGeometry(value, tensor.strides(),
                tensor.sym_storage_offset().expect_int());
  }
  setValue(tensor, value);
}
