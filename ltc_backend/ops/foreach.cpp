//===- foreach.cpp - Ops on lists of tensors, one node for each element ---===//
//
// An optimizer step calls some twelve `_foreach_` ops over all parameters.
// torch passes each element through autograd, functionalization and its Meta
// kernel, which takes 1.1 to 1.7 us (torch 2.13) without the creation of the
// node. If gradients are off, all tensors have the same floating-point dtype
// and corresponding tensors have equal sizes, the kernels below create one node
// for each element. If the op is in place, the node becomes the element's
// value. All other calls use torch's implementation.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/in_place.h"
#include "eager_semantics/memory_overlap.h"
#include "graph/inference_tensors.h"
#include "ir/other_ops.h"
#include "ops/registration.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"
#include "tracing/wrapped_value.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <unordered_map>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

enum class Element { Whole, OfTensorList, OfNumberList };

/// The op that a `_foreach_` op applies to each element of its lists.
struct Repetition {
  const OpRecord *record = nullptr;
  std::vector<Element> arguments; // by argument of the list op
  bool isInPlace = false;
};

Element elementOf(const c10::TypePtr &type) {
  if (type->kind() != c10::TypeKind::ListType)
    return Element::Whole;
  return type->expectRef<c10::ListType>().getElementType()->kind() ==
                 c10::TypeKind::TensorType
             ? Element::OfTensorList
             : Element::OfNumberList;
}

ArgumentKind elementKindOf(const c10::Argument &argument, Element element) {
  bool isTensor = element == Element::OfTensorList ||
                  (element == Element::Whole &&
                   argument.type()->kind() == c10::TypeKind::TensorType);
  return isTensor ? ArgumentKind::Tensor : ArgumentKind::Scalar;
}

/// Whether `elements` fit the first arguments of `record`, and all other
/// arguments have defaults.
bool fits(const OpRecord &record, const c10::FunctionSchema &schema,
          const std::vector<Element> &elements) {
  if (record.arguments.size() < elements.size() || record.numResults != 1)
    return false;
  for (size_t i = 0; i < record.arguments.size(); ++i) {
    const ArgumentSpec &spec = record.arguments[i];
    if (i >= elements.size()) {
      if (!spec.defaultValue && spec.kind != ArgumentKind::Ignored)
        return false;
    } else if (spec.kind != elementKindOf(schema.arguments()[i], elements[i])) {
      return false;
    }
  }
  return true;
}

using RecordsByName =
    std::unordered_map<std::string, std::vector<const OpRecord *>>;

/// Returns the records with a `_foreach_` op, by the name of that op.
RecordsByName recordsByForeachName() {
  RecordsByName records;
  for (const OpRecord &record : opRecords()) {
    if (!record.foreach)
      continue;
    std::string name = record.handle->operator_name().name;
    name.insert(std::strlen("aten::"), "_foreach_");
    records[name].push_back(&record);
  }
  return records;
}

Repetition repetitionOf(const OperatorHandle &op,
                        const RecordsByName &recordsByName) {
  Repetition repetition;
  const c10::FunctionSchema &schema = op.schema();
  std::string name = schema.name();
  repetition.isInPlace = name.back() == '_';
  if (repetition.isInPlace)
    name.pop_back();
  for (const c10::Argument &argument : schema.arguments())
    repetition.arguments.push_back(elementOf(argument.type()));
  auto found = recordsByName.find(name);
  if (found == recordsByName.end())
    return repetition;
  for (const OpRecord *record : found->second)
    if (fits(*record, schema, repetition.arguments))
      repetition.record = record;
  return repetition;
}

bool isPlain(const at::Tensor &tensor, const at::Tensor &first) {
  return isPlainWrapper(tensor) && tensor.scalar_type() == first.scalar_type();
}

class ForeachKernel final : public KernelAround {
public:
  ForeachKernel(Repetition repetition, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), repetition(std::move(repetition)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = repetition.arguments.size();
    auto arguments = torch::jit::last(*stack, numArguments);
    if (repetition.isInPlace)
      for (size_t i = 0; i < arguments[0].toListRef().size(); ++i)
        checkOverlaps(arguments, i);
    if (!isFast(arguments)) {
      if (repetition.isInPlace && readsWrittenMemory(arguments))
        return callEach(op, *stack);
      return previous.callBoxed(op, keys, stack);
    }
    BelowFunctionalization below;
    c10::List<at::Tensor> results;
    size_t count = arguments[0].toListRef().size();
    for (size_t i = 0; i < count; ++i) {
      at::Tensor value = traceElement(arguments, i);
      if (repetition.isInPlace) {
        markInPlace(value);
        replaceValue(arguments[0].toListRef()[i].toTensor(), value);
      } else {
        results.push_back(
            at::functionalization::impl::to_functional_tensor(value));
      }
    }
    torch::jit::drop(*stack, numArguments);
    if (!repetition.isInPlace)
      stack->emplace_back(std::move(results));
  }

private:
  /// Whether an element shares memory with the written tensor of an earlier
  /// element. Eager's kernels run one element after the other; torch's
  /// functionalization computes all of them from the values before the call.
  bool readsWrittenMemory(c10::ArrayRef<IValue> arguments) const {
    std::unordered_map<const void *, size_t> firstWrite;
    const auto &selves = arguments[0].toListRef();
    auto memoryOf = [](const at::Tensor &tensor) -> const void * {
      return tensor.defined() && tensor.has_storage()
                 ? tensor.storage().unsafeGetStorageImpl()
                 : nullptr;
    };
    for (size_t i = 0; i < selves.size(); ++i)
      if (const void *memory = memoryOf(selves[i].toTensor()))
        if (!firstWrite.emplace(memory, i).second)
          return true;
    for (size_t a = 1; a < arguments.size(); ++a) {
      if (repetition.arguments[a] != Element::OfTensorList)
        continue;
      const auto &list = arguments[a].toListRef();
      for (size_t i = 0; i < list.size(); ++i) {
        auto found = firstWrite.find(memoryOf(list[i].toTensor()));
        if (found != firstWrite.end() && found->second < i)
          return true;
      }
    }
    return false;
  }

  /// Calls the in-place op for one element after the other.
  void callEach(const OperatorHandle &op, Stack &stack) const {
    const size_t numArguments = repetition.arguments.size();
    std::vector<IValue> arguments = torch::jit::pop(stack, numArguments);
    auto single = elementwiseInPlace(*repetition.record);
    TORCH_CHECK(single, op.schema().name(),
                " of tensors that share memory isn't supported on device "
                "'lazy': call the op for each tensor.");
    for (size_t i = 0; i < arguments[0].toListRef().size(); ++i) {
      Stack element = elementOf(arguments, i);
      const auto &schema = single->schema().arguments();
      for (size_t a = numArguments; a < schema.size(); ++a)
        element.push_back(*schema[a].default_value());
      single->callBoxed(element);
    }
  }

  /// Returns the op's arguments for element `i` of the lists.
  Stack elementOf(c10::ArrayRef<IValue> arguments, size_t i) const {
    Stack element;
    for (size_t a = 0; a < arguments.size(); ++a)
      element.push_back(repetition.arguments[a] == Element::Whole
                            ? arguments[a]
                            : arguments[a].toListRef()[i]);
    return element;
  }

  bool isFast(c10::ArrayRef<IValue> arguments) const {
    const auto &selves = arguments[0].toListRef();
    if (at::GradMode::is_enabled() || selves.empty())
      return false;
    const at::Tensor &first = selves[0].toTensor();
    if (!first.defined() || !at::isFloatingType(first.scalar_type()))
      return false;
    for (size_t a = 0; a < arguments.size(); ++a) {
      if (repetition.arguments[a] == Element::Whole) {
        if (arguments[a].isTensor())
          return false;
        continue;
      }
      const auto &list = arguments[a].toListRef();
      if (list.size() != selves.size())
        return false;
      if (repetition.arguments[a] == Element::OfTensorList)
        for (size_t i = 0; i < list.size(); ++i)
          if (!isPlain(list[i].toTensor(), first) ||
              list[i].toTensor().sizes() != selves[i].toTensor().sizes())
            return false;
    }
    return true;
  }

  void checkOverlaps(c10::ArrayRef<IValue> arguments, size_t i) const {
    const at::Tensor &self = arguments[0].toListRef()[i].toTensor();
    if (!isPlainWrapper(self))
      return;
    checkWrittenOnce(self, repetition.record->name);
    for (size_t a = 1; a < arguments.size(); ++a)
      if (repetition.arguments[a] == Element::OfTensorList &&
          i < arguments[a].toListRef().size())
        checkRead(self, arguments[a].toListRef()[i].toTensor(), Overlap::Part,
                  repetition.record->name);
  }

  at::Tensor traceElement(c10::ArrayRef<IValue> arguments, size_t i) const {
    Stack element = elementOf(arguments, i);
    for (size_t a = 0; a < arguments.size(); ++a)
      if (repetition.arguments[a] == Element::OfTensorList)
        element[a] = valueOf(element[a].toTensor());
    const OpRecord &record = *repetition.record;
    while (element.size() < record.arguments.size())
      element.push_back(
          record.arguments[element.size()].defaultValue.value_or(IValue()));
    return traceOp(record, element)[0];
  }

  Repetition repetition;
};

/// Bumps the versions of the tensors that a list op writes. Functionalization
/// of list ops doesn't do that (torch 2.13), so autograd wouldn't notice that a
/// saved tensor was modified.
class VersionedForeach final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    auto arguments = torch::jit::last(*stack, numArguments);
    std::vector<at::Tensor> written = arguments[0].toTensorVector();
    const std::string &name = op.schema().name();
    if (name != "aten::_foreach_copy_")
      for (const at::Tensor &tensor : written)
        checkWrittenDevice(tensor, arguments, name);
    // Functional tensors of other devices, which torch.compile creates, only
    // need torch's kernel.
    if (written.empty() || !written[0].device().is_lazy())
      return previous.callBoxed(op, keys, stack);
    std::vector<int64_t> versions;
    for (const at::Tensor &tensor : written)
      versions.push_back(versionOf(tensor));
    // The functional op may have a result whose dtype can't be written to the
    // tensor. In that case, the kernel that repeats the in-place op on each
    // tensor raises that op's error. This kernel also handles numbers in a CPU
    // tensor (`_foreach_addcmul_.Tensor`), which functionalization would
    // replace by a Meta tensor.
    const bool hasComplex =
        std::any_of(arguments.begin(), arguments.end(), isComplex);
    auto fits = [&](const at::Tensor &tensor) {
      return tensor.is_complex() || (tensor.is_floating_point() && !hasComplex);
    };
    auto hasModeOfFirst = [&](const at::Tensor &tensor) {
      return tensor.is_inference() == written[0].is_inference();
    };
    if (std::none_of(arguments.begin(), arguments.end(), isCpuVector) &&
        std::all_of(written.begin(), written.end(), fits) &&
        std::all_of(written.begin(), written.end(), hasModeOfFirst)) {
      ModeOfWritten mode(written);
      previous.callBoxed(op, keys, stack);
    } else
      op.callBoxedForDispatchKey(DispatchKey::CompositeExplicitAutograd,
                                 *stack);
    // Compares all versions before changing any: a view shares its base's
    // version.
    c10::SmallVector<c10::TensorImpl *, 8> unchanged;
    for (size_t i = 0; i < written.size(); ++i)
      if (!written[i].is_inference() && versionOf(written[i]) == versions[i])
        unchanged.push_back(written[i].unsafeGetTensorImpl());
    for (c10::TensorImpl *tensor : unchanged)
      tensor->bump_version();
  }

private:
  static bool isComplex(const IValue &value) {
    if (value.isTensor())
      return value.toTensor().defined() && value.toTensor().is_complex();
    if (value.isList()) {
      const auto &list = value.toListRef();
      return std::any_of(list.begin(), list.end(), isComplex);
    }
    return value.isComplexDouble();
  }

  static bool isCpuVector(const IValue &value) {
    return value.isTensor() && value.toTensor().defined() &&
           value.toTensor().is_cpu() && value.toTensor().dim() == 1;
  }
};

} // namespace

void torch_ltc::registerForeachKernels(const AtenOps &ops) {
  SilentRegistration silence;
  RecordsByName recordsByName = recordsByForeachName();
  for (const c10::OperatorHandle &op : ops) {
    if (!holds(OpFact::RepeatsOp, op.operator_name().name) ||
        elementOf(op.schema().arguments()[0].type()) != Element::OfTensorList)
      continue;
    if (op.hasTag(at::Tag::inplace))
      registerAround<VersionedForeach>(op, DispatchKey::Functionalize);
    Repetition repetition = repetitionOf(op, recordsByName);
    if (!repetition.record)
      continue;
    registerAround<ForeachKernel>(op, DispatchKey::AutogradLazy,
                                  std::move(repetition));
  }
}
