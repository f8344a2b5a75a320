//===- eager_check.cpp - Checks of calls with eager's kernels -------------===//

#include "shape/eager_check.h"
#include "events/reported_warnings.h"
#include "ir/tensor_arguments.h"

#include <ATen/Functions.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/stack.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <mutex>
#include <unordered_map>

using namespace torch_ltc;
using c10::IValue;

namespace {

constexpr int64_t kMaxElements = 4096;
constexpr int64_t kMaxElementsIfEmpty = 1 << 20;
constexpr size_t kMaxKnownCalls = 1 << 15;

/// Returns the number of dtype limits that `magnitude` exceeds. Numbers of the
/// same sign with equal counts are in the range of the same dtypes.
uint64_t numTooSmall(double magnitude) {
  constexpr double bounds[] = {
      127,        128,    255,        32767,      32768,  65504,   65535,
      0x1p31 - 1, 0x1p31, 0x1p32 - 1, 0x1p63 - 1, 0x1p64, FLT_MAX, DBL_MAX};
  return uint64_t(
      std::lower_bound(std::begin(bounds), std::end(bounds), magnitude) -
      std::begin(bounds));
}

/// Encodes the properties of a number that eager's checks may depend on: its
/// sign, the dtypes that can represent it, whether it is a bool (`x - True`)
/// and, if it is a CPU tensor, its dtype. The attribute hash doesn't cover them
/// if the number is a dynamic scalar.
uint64_t numberKindOf(const IValue &value) {
  if (value.isTensor() && value.toTensor().defined() &&
      !value.toTensor().device().is_lazy())
    return uint64_t(value.toTensor().scalar_type()) << 8 | 7;
  if (value.isBool())
    return value.toBool() ? 5 : 6;
  if (!value.isInt() && !value.isDouble())
    return 0;
  double number = value.toScalar().toDouble();
  uint64_t sign = number < 0 ? 1 : number == 0 ? 2 : number > 0 ? 3 : 4;
  return numTooSmall(std::abs(number)) << 8 | sign;
}

/// Whether eager only compares sizes with each other and with 0 and 1: no
/// argument is a size, and no size has to divide or exceed another.
bool comparesSizes(const OpRecord &record) {
  switch (record.shapeRule) {
  case ShapeRule::gluShape:
  case ShapeRule::glu_backwardShape:
    return false;
  case ShapeRule::reductionShape:
  case ShapeRule::floating_reductionShape:
  case ShapeRule::listed_reductionShape:
  case ShapeRule::reduction_pairShape:
  case ShapeRule::extremumShape:
  case ShapeRule::extremum_pairShape:
  case ShapeRule::scanShape:
  case ShapeRule::softmaxShape:
  case ShapeRule::sortShape:
  case ShapeRule::normShape:
  case ShapeRule::catShape:
  case ShapeRule::stackShape:
    return true;
  default:
    return record.family == Family::elementwise ||
           record.family == Family::linear;
  }
}

bool isSmall(const OpCall &call, c10::ArrayRef<ResultShape> results) {
  int64_t elements = 0;
  bool isEmpty = false;
  for (const torch::lazy::Shape *operand : call.operands) {
    int64_t count = c10::multiply_integers(operand->sizes());
    elements += count;
    isEmpty |= count == 0;
  }
  for (const ResultShape &result : results)
    elements += c10::multiply_integers(result.sizes);
  return elements <= kMaxElements ||
         (isEmpty && elements <= kMaxElementsIfEmpty);
}

/// How a call is checked.
enum class Check {
  none,
  /// The substitutes have the operands' sizes.
  whole,
  /// The substitutes have small sizes instead. Two of them are equal if the
  /// operands' sizes are, so the op accepts them if it accepts the operands'.
  reduced,
  /// As `reduced`, but the op may reject the small sizes, so only errors that
  /// don't depend on sizes count: those of dtypes and of dims out of range.
  unsized,
};

Check checkOf(const OpCall &call, c10::ArrayRef<ResultShape> results) {
  const OpRecord &record = call.record;
  if (record.isOurs || record.checksValues ||
      !record.handle->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU))
    return Check::none;
  if (isSmall(call, results))
    return Check::whole;
  if (comparesSizes(record))
    return Check::reduced;
  // Not checked: a constructor, because its arguments give the result's size; a
  // view, which has any dtype; a convolution of floats, because oneDNN takes up
  // to 3 ms to compile even a small one.
  if (record.family == Family::constructor || call.operands.empty() ||
      record.strideRule == StrideRule::View)
    return Check::none;
  bool isFloat = at::isFloatingType(call.operands.front()->scalar_type());
  return record.family == Family::convolution && isFloat ? Check::none
                                                         : Check::unsized;
}

/// Maps sizes to ids, which serve as small sizes: equal sizes have the same id.
/// Ids are assigned in the order in which the sizes first occur; sizes below
/// the first id are their own ids.
class SizeNames {
public:
  explicit SizeNames(Check check) : firstId(check == Check::unsized ? 9 : 2) {}

  int64_t of(int64_t size) {
    if (size < firstId)
      return size;
    const auto *found = std::find(known.begin(), known.end(), size);
    int64_t position = found - known.begin();
    if (found == known.end())
      known.push_back(size);
    return firstId + position;
  }

private:
  const int64_t firstId;
  c10::SmallVector<int64_t, 8> known;
};

Hash128 keyOf(const OpCall &call, c10::ArrayRef<ResultShape> results,
              Check check) {
  HashState state(4);
  state.add(call.attributeHash);
  state.add(uint64_t(call.promoted));
  state.add(uint64_t(check == Check::unsized));
  const bool byName = check == Check::unsized || comparesSizes(call.record);
  SizeNames names(check);
  for (const torch::lazy::Shape *operand : call.operands) {
    state.add(uint64_t(operand->scalar_type()) << 8 | uint64_t(operand->dim()));
    for (int64_t size : operand->sizes())
      state.add(uint64_t(byName ? names.of(size) : size));
  }
  for (const IValue &value : call.arguments)
    state.add(numberKindOf(value));
  // The results' dtypes may depend on the default dtype, which isn't an
  // argument.
  for (const ResultShape &result : results)
    state.add(uint64_t(result.dtype));
  return state.finish();
}

/// The results of earlier checks, by the key of the call.
class KnownCalls {
public:
  std::optional<bool> find(const Hash128 &key) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = taken.find(key);
    return found == taken.end() ? std::nullopt : std::optional(found->second);
  }

  void insert(const Hash128 &key, bool isTaken) {
    std::lock_guard<std::mutex> lock(mutex);
    if (taken.size() >= kMaxKnownCalls)
      taken.clear();
    taken.emplace(key, isTaken);
  }

private:
  std::mutex mutex;
  std::unordered_map<Hash128, bool, Hash128Hasher> taken;
};

KnownCalls &knownCalls() {
  static auto *calls = new KnownCalls;
  return *calls;
}

/// Makes CPU tensors that replace the lazy tensors of a call.
class Substitutes {
public:
  Substitutes(bool isDivision, Check check)
      : isDivision(isDivision), check(check), names(check) {}

  IValue of(const IValue &value) {
    if (value.isDevice())
      return c10::Device(c10::kCPU);
    if (check == Check::unsized && value.isIntList()) {
      std::vector<int64_t> numbers = value.toIntVector();
      for (int64_t &number : numbers)
        number = names.of(number);
      return numbers;
    }
    return mapTensors(value,
                      [this](const at::Tensor &tensor) { return of(tensor); });
  }

private:
  /// The elements are ones, which are valid divisors and probabilities, or
  /// zeros for integers that may be indices.
  at::Tensor of(const at::Tensor &tensor) {
    if (!tensor.defined() || !tensor.device().is_lazy())
      return tensor;
    auto options = at::TensorOptions().dtype(tensor.scalar_type());
    bool isIndex = tensor.scalar_type() != at::kBool &&
                   c10::isIntegralType(tensor.scalar_type(), false);
    c10::SmallVector<int64_t, 6> sizes(tensor.sizes());
    if (check != Check::whole)
      for (int64_t &size : sizes)
        size = names.of(size);
    at::Tensor result = isIndex && !isDivision ? at::zeros(sizes, options)
                                               : at::ones(sizes, options);
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
      result.unsafeGetTensorImpl()->set_wrapped_number(true);
    return result;
  }

  bool isDivision;
  Check check;
  SizeNames names;
};

bool looksLike(const IValue &value, const ResultShape &expected, Check check) {
  at::Tensor tensor = value.isTensor() ? value.toTensor() : at::Tensor();
  if (!tensor.defined())
    return expected.dtype == at::ScalarType::Undefined;
  // A CPU kernel may return an empty tensor for statistics that it doesn't
  // compute, although the shape rule gives their sizes.
  return tensor.scalar_type() == expected.dtype &&
         (tensor.numel() == 0 || check != Check::whole ||
          tensor.sizes() == at::IntArrayRef(expected.sizes));
}

/// Detects warnings and passes them on to the user.
class WarningNotice final : public c10::WarningHandler {
public:
  WarningNotice() : outer(c10::WarningUtils::get_warning_handler()) {}
  void process(const c10::Warning &warning) override {
    hasWarned = true;
    noteReported(warning);
    outer->process(warning);
  }

  bool hasWarned = false;

private:
  c10::WarningHandler *outer;
};

/// Throws eager's error if eager's kernel doesn't support a dtype. Returns
/// whether it accepts the call.
bool isTaken(const OpCall &call, c10::ArrayRef<ResultShape> results,
             Check check) {
  const c10::OperatorHandle &op = *call.record.handle;
  // This isn't the user's call, so the thread's modes don't apply.
  c10::impl::ExcludeDispatchKeyGuard guard(
      c10::autograd_dispatch_keyset_with_ADInplaceOrView |
      c10::DispatchKeySet({c10::DispatchKey::Python,
                           c10::DispatchKey::PythonTLSSnapshot,
                           c10::DispatchKey::Functionalize}));
  at::DisableRecordFunctionGuard noProfile;
  torch::jit::Stack stack;
  Substitutes substitutes(call.record.divides, check);
  for (const IValue &value : call.arguments)
    stack.push_back(substitutes.of(value));
  try {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  } catch (const c10::NotImplementedError &) {
    throw;
  } catch (const c10::Error &error) {
    // what() would look up the symbols of a backtrace, which takes 10 ms.
    return check == Check::unsized &&
           std::string_view(error.what_without_backtrace())
                   .find("Dimension out of range") == std::string_view::npos;
  } catch (const std::exception &) {
    return check == Check::unsized;
  }
  if (stack.size() != results.size())
    return true; // a list of tensors
  for (size_t i = 0; i < results.size(); ++i)
    if (!looksLike(stack[i], results[i], check))
      return false;
  return true;
}

} // namespace

void torch_ltc::checkAgainstEager(const OpCall &call,
                                  c10::ArrayRef<ResultShape> results) {
  const Check check = checkOf(call, results);
  if (check == Check::none)
    return;
  Hash128 key = keyOf(call, results, check);
  std::optional<bool> known = knownCalls().find(key);
  if (!known) {
    WarningNotice notice;
    c10::WarningUtils::WarningHandlerGuard guard(&notice);
    known = isTaken(call, results, check);
    // Eager warns at each call, so a call with a warning is checked each time.
    if (!notice.hasWarned)
      knownCalls().insert(key, *known);
  }
  TORCH_CHECK(*known, "eager PyTorch rejects these arguments of ",
              call.record.name);
}

/// Whether the op writes its number to no element, so that eager doesn't check
/// the number. Eager's other ops check it, even if they write no element.
static bool leavesNumberOut(const OpRecord &record,
                            c10::ArrayRef<IValue> arguments) {
  if (record.shapeRule == ShapeRule::constant_padShape) {
    auto pads = arguments[1].toIntList();
    return std::all_of(pads.begin(), pads.end(),
                       [](int64_t pad) { return pad <= 0; });
  }
  return record.shapeRule == ShapeRule::scatterShape &&
         arguments[2].toTensor().numel() == 0;
}

void torch_ltc::checkElementNumber(const OpRecord &record,
                                   c10::ArrayRef<IValue> arguments,
                                   c10::ScalarType dtype) {
  if (!record.elementNumber)
    return;
  const IValue &number = arguments[*record.elementNumber];
  bool isAny = dtype == at::kBool || dtype == at::kComplexDouble ||
               (dtype == at::kLong && number.isInt()) ||
               (dtype == at::kDouble && !number.isComplexDouble());
  bool isReal = number.isInt() || number.isDouble();
  bool isSmall = isReal && std::abs(number.toScalar().toDouble()) <= 127;
  if (dtype == at::kByte && number.isDouble() && number.toDouble() < 0)
    isSmall = false; // unlike a negative integer, a negative double is an error
  if (isAny || isSmall || !number.isScalar() ||
      leavesNumberOut(record, arguments))
    return;
  at::detail::scalar_tensor_static(number.toScalar(), dtype, at::kCPU);
  // Unlike all other ops, scalar_tensor doesn't check the range of 16-bit
  // floats (torch 2.13).
  if (!isReal || record.shapeRule == ShapeRule::scalarShape)
    return;
  if (dtype == at::kHalf)
    (void)number.toScalar().to<at::Half>();
  else if (dtype == at::kBFloat16)
    (void)number.toScalar().to<at::BFloat16>();
}
