//===- trace.cpp - Tracing of an op of the op table -----------------------===//

#include "tracing/trace.h"

#include "compilation/external_backend.h"
#include "events/guards.h"
#include "events/metrics.h"
#include "events/op_error.h"
#include "execution/expected_trace.h"
#include "execution/step_executor.h"
#include "fallback/eager_fallback.h"
#include "graph/inference_tensors.h"
#include "graph/live_tensors.h"
#include "graph/trace_cache.h"
#include "ir/op_counters.h"
#include "shape/eager_check.h"
#include "shape/infer_shapes.h"
#include "shape/strides.h"
#include "tracing/argument_walk.h"
#include "tracing/custom_ops.h"
#include "tracing/remembered_formula.h"
#include "tracing/varying_numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace torch_ltc;
using c10::IValue;

namespace {

std::vector<at::Tensor> runEagerly(const OpRecord &record,
                                   c10::ArrayRef<IValue> arguments,
                                   const std::string &reason) {
  torch::jit::Stack stack(arguments.begin(), arguments.end());
  runFallback(*record.handle, stack, reason);
  std::vector<at::Tensor> results;
  for (const IValue &value : stack)
    if (value.isTensorList())
      for (const at::Tensor &tensor : value.toTensorVector())
        results.push_back(tensor);
    else
      results.push_back(value.isNone() ? at::Tensor() : value.toTensor());
  return results;
}

std::vector<torch::lazy::Shape> shapesOf(const OpRecord &record,
                                         c10::ArrayRef<IValue> arguments,
                                         const ArgumentWalk &walk,
                                         const AttributeListPtr &attributes) {
  OpCall call{.record = record, .arguments = arguments};
  for (const torch::lazy::Value &operand : walk.operands)
    call.operands.push_back(&operand.shape());
  call.promoted = walk.promoted;
  call.attributeHash = attributes->hash;
  return inferShapes(call);
}

/// Throws if the result is too large for memory: sizes whose product overflows
/// must not reach the allocator.
void checkResult(const OpRecord &record, const torch::lazy::Shape &shape) {
  if (shape.scalar_type() == c10::ScalarType::Undefined)
    return;
  int64_t bytes = int64_t(c10::elementSize(shape.scalar_type()));
  constexpr int64_t addressable = int64_t(1) << 47;
  for (int64_t size : shape.sizes())
    TORCH_CHECK(!__builtin_mul_overflow(bytes, size, &bytes) &&
                    bytes <= addressable,
                "A tensor of sizes ", shape.sizes(), " doesn't fit in memory.",
                opSuffix(record.name));
}

/// Whether a number becomes 0 when it is converted to integers of `dtype`, as
/// 256 does for uint8.
bool wrapsToZero(int64_t number, c10::ScalarType dtype) {
  if (dtype == at::kBool)
    return number == 0;
  constexpr size_t kAllBits = 64;
  size_t unused = kAllBits - 8 * c10::elementSize(dtype);
  return uint64_t(number) << unused == 0;
}

/// Throws if integers are divided by the number 0. The program checks divisors
/// that are lazy tensors.
void checkDivisor(const OpRecord &record, c10::ArrayRef<IValue> arguments,
                  const torch::lazy::Shape &result) {
  if (!c10::isIntegralType(result.scalar_type(), /*includeBool=*/true) ||
      !record.divides || !c10::multiply_integers(result.sizes()))
    return;
  const IValue &divisor = arguments[1];
  bool isZero =
      (divisor.isInt() && wrapsToZero(divisor.toInt(), result.scalar_type())) ||
      (divisor.isBool() && !divisor.toBool());
  if (divisor.isTensor() && divisor.toTensor().device().is_cpu()) {
    at::Scalar number = divisor.toTensor().item();
    isZero = number.isIntegral(/*includeBool=*/false)
                 ? wrapsToZero(number.toLong(), result.scalar_type())
                 : !number.toBool();
  }
  TORCH_CHECK(!isZero, "ZeroDivisionError", opSuffix(record.name));
}

/// Whether the op is a convolution of integers and an external backend is
/// selected, which needn't support such convolutions.
bool isIntegerConvolutionForBackend(const OpRecord &record,
                                    c10::ScalarType dtype) {
  return record.shapeRule == ShapeRule::convolutionShape &&
         !c10::isFloatingType(dtype) && selectedBackend();
}

thread_local const OpRecord *inPlaceRecord = nullptr;

/// The storage offset of the results. An inverse of a view returns a copy of
/// the operand's memory, up to the operand's last element.
int64_t keptOffset(StrideRule rule, const OpRecord &record,
                   c10::ArrayRef<IValue> arguments) {
  return rule == StrideRule::LikeSelf && isViewOrInverse(record)
             ? arguments[0].toTensor().storage_offset()
             : 0;
}

void setGeometries(StrideRule rule, const OpRecord &record,
                   c10::ArrayRef<IValue> arguments,
                   const std::vector<at::Tensor> &results) {
  const c10::FunctionSchema &schema = record.handle->schema();
  for (const at::Tensor &result : results) {
    if (!result.defined())
      continue;
    if (rule == StrideRule::View) {
      Geometry geometry =
          viewGeometry(record.shapeRule, schema, arguments, result.sizes());
      if (geometry.offset || result.strides() != geometry.strides)
        setGeometry(result, geometry.strides, geometry.offset);
      continue;
    }
    Strides strides = resultStrides(rule, schema, arguments, result.sizes());
    int64_t offset = keptOffset(rule, record, arguments);
    if (offset || result.strides() != strides)
      setGeometry(result, strides, offset);
  }
}

/// Whether eager's kernel would read out of bounds instead of raising an error,
/// because it leaves the check of the sizes to its callers (torch 2.13).
bool isUncheckedByEager(const OpRecord &record,
                        c10::ArrayRef<IValue> arguments) {
  return record.strideRule == StrideRule::BatchNorm &&
         arguments[0].toTensor().numel() > 0;
}

} // namespace

namespace {

/// What happens to a call that can't be traced.
enum class Otherwise { RunEagerly, Nothing };

/// Why a call whose results have these shapes runs eagerly; "" if it is traced.
/// Throws if the shapes show an error in the call.
std::string reasonOfResults(const OpRecord &record,
                            c10::ArrayRef<IValue> arguments,
                            c10::ArrayRef<torch::lazy::Shape> shapes) {
  for (const torch::lazy::Shape &shape : shapes)
    if (shape.scalar_type() != c10::ScalarType::Undefined &&
        !isSupportedDType(shape.scalar_type()))
      return dtypeReason(shape.scalar_type());
  if (isIntegerConvolutionForBackend(record, shapes[0].scalar_type()))
    return "a convolution of integers";
  checkDivisor(record, arguments, shapes[0]);
  checkElementNumber(record, arguments, shapes[0].scalar_type());
  for (const torch::lazy::Shape &shape : shapes)
    checkResult(record, shape);
  return "";
}

std::vector<at::Tensor> resultsOf(const torch::lazy::NodePtr &node) {
  std::vector<at::Tensor> results(node->num_outputs());
  for (size_t i = 0; i < results.size(); ++i)
    if (node->shapes()[i].scalar_type() != c10::ScalarType::Undefined)
      results[i] = makeTensor(torch::lazy::Value(node, i));
  return results;
}

/// What the trace cache and the shape rules return for a call.
struct Lookup {
  /// The node of an equal call, if the cached trace continues with one.
  torch::lazy::NodePtr node;
  /// Null unless the words were interned to infer the shapes.
  AttributeListPtr attributes;
  /// Empty if the shapes weren't inferred, which is only possible if `node`
  /// isn't null. `TracedCall` may refer to elements of this vector, which stay
  /// in place when the vector is moved.
  std::vector<torch::lazy::Shape> shapes;
};

/// Whether a dynamic scalar may not fit the integers of the first operand.
/// Eager rejects such factors (`alpha` of `add`), also those of a call that
/// equals an earlier one up to its numbers.
bool mayNotFit(const ArgumentWalk &walk) {
  if (walk.scalars.empty() || walk.operands.empty() ||
      !c10::isIntegralType(walk.operands[0].shape().scalar_type(),
                           /*includeBool=*/false))
    return false;
  constexpr int64_t most = std::numeric_limits<int8_t>::max();
  return std::any_of(walk.scalars.begin(), walk.scalars.end(),
                     [](const DynamicScalar &scalar) {
                       return scalar.isFloat
                                  ? !(std::abs(scalar.asFloat) <= most)
                                  : scalar.asInt > most || scalar.asInt < -most;
                     });
}

/// Completes `call` from `walk`, and looks it up in the trace cache. Throws if
/// the results' shapes can't be inferred.
Lookup lookUp(TracedCall &call, c10::ArrayRef<IValue> arguments,
              ArgumentWalk &walk) {
  const OpRecord &record = call.record;
  Lookup found;
  auto infer = [&] {
    found.attributes = internAttributes(record.id, walk.attributes.words);
    return shapesOf(record, arguments, walk, found.attributes);
  };
  bool hasParameters = VaryingNumbers::ofThisThread().parametrize(
      record, walk, infer, found.shapes);
  call.words = walk.attributes.words;
  call.operands = walk.operands;
  call.scalars = walk.scalars;
  if (hasParameters) {
    call.shapes = found.shapes;
    found.attributes = nullptr; // interned before the words changed
  }
  if (found.shapes.empty() && mayNotFit(walk))
    found.shapes = infer(); // checks the numbers
  if (!isIntegerConvolutionForBackend(record, walk.promoted))
    found.node = TraceCache::ofThisThread().follow(call);
  if (!found.node && found.shapes.empty())
    found.shapes = infer();
  return found;
}

/// Eagerly runs a call whose arguments can't be traced.
std::vector<at::Tensor> runUntraceable(const OpRecord &record,
                                       c10::ArrayRef<IValue> arguments,
                                       const std::string &reason,
                                       StrideRule rule) {
  std::vector<at::Tensor> results = runEagerly(record, arguments, reason);
  // Results under other rules keep the strides that eager gave them.
  if (rule == StrideRule::View || rule == StrideRule::LikeSelf)
    setGeometries(rule, record, arguments, results);
  return results;
}

} // namespace

/// Whether an argument requests a memory format other than row-major.
static bool requestsFormat(const OpRecord &record,
                           c10::ArrayRef<IValue> arguments) {
  std::optional<at::MemoryFormat> format =
      formatArgument(record.handle->schema(), arguments);
  return format && *format != at::MemoryFormat::Preserve &&
         *format != at::MemoryFormat::Contiguous;
}

/// Traces a call, or does `otherwise`. Returns an empty vector only if the call
/// was neither traced nor run.
static std::vector<at::Tensor> traceCall(const OpRecord &record,
                                         c10::ArrayRef<IValue> arguments,
                                         Otherwise otherwise) {
  // A second thread's first call here registers the kernels of locked_ops.cpp,
  // which takes longer than other threads' steps. It must happen before values
  // are read, because these steps may compute the values.
  LiveSet::ofThisThread();
  // Not all calls come from an op: collectives and optimizers are traced
  // directly. Between the reading of the operands' values and the creation of
  // the result, which may take seconds if a Meta kernel imports Python modules,
  // no other thread may schedule a graph with effects.
  std::unique_lock<TraceLock> lock(traceLock, std::defer_lock);
  if (isScheduledByThreads())
    lock.lock();
  ArgumentWalk walk(record, arguments);
  StrideRule rule = record.strideRule;
  ModeOfResults mode(isViewOrInverse(record), arguments);
  NewMemory newMemory(record);
  bool isInPlace = std::exchange(inPlaceRecord, nullptr) == &record;
  if (isInPlace)
    rule = StrideRule::LikeSelf;
  else if (rule == StrideRule::LikeSelf && arguments[0].isTensor() &&
           hasRepeatedElements(arguments[0].toTensor()))
    rule = StrideRule::Preserve; // eager's result repeats no elements
  if (!walk.fallbackReason().empty()) {
    if (otherwise == Otherwise::Nothing)
      return {};
    return runUntraceable(record, arguments, walk.fallbackReason(), rule);
  }
  TracedCall call{.record = record, .promoted = walk.promoted};
  Lookup found;
  try {
    found = lookUp(call, arguments, walk);
  } catch (const c10::Error &) {
    if (otherwise == Otherwise::Nothing)
      return {};
    // Eager either rejects the arguments too, with its own message, or accepts
    // more than the shape rules do.
    if (isForbidden(Forbidden::fallback) ||
        isUncheckedByEager(record, arguments))
      throw;
    return runEagerly(record, arguments, "arguments of these sizes or dtypes");
  }
  torch::lazy::NodePtr node = std::move(found.node);
  bool isReused = node != nullptr;
  if (!node) {
    std::string reason = reasonOfResults(record, arguments, found.shapes);
    if (!reason.empty())
      return runEagerly(record, arguments, reason);
    if (!found.attributes)
      found.attributes = internAttributes(record.id, call.words);
    node = TraceCache::ofThisThread().append(call, std::move(found.attributes),
                                             std::move(found.shapes));
  } else if (!call.scalars.empty()) {
    checkDivisor(record, arguments, node->shape(0));
    checkElementNumber(record, arguments, node->shape(0).scalar_type());
  }
  ExpectedTraces::ofThisThread().add(node);

  std::vector<at::Tensor> results = resultsOf(node);
  if (isInPlace)
    static_cast<OpNode &>(*node).markInPlace();
  if (rule == StrideRule::View || rule == StrideRule::HeadsInside ||
      rule == StrideRule::MatrixColumns || rule == StrideRule::Fft ||
      keptOffset(rule, record, arguments) ||
      // Strides of empty results can differ although all operands are
      // row-major.
      ((walk.hasStridedOperand || !results[0].numel()) &&
       rule != StrideRule::Contiguous) ||
      rule == StrideRule::ConstantPad || // may clone a part
      (rule == StrideRule::Preserve && requestsFormat(record, arguments)))
    setGeometries(rule, record, arguments, results);
  count(Counter::traced_ops);
  countTracedOp(record, isReused);
  StepExecutor::get().noteTracedOp();
  return results;
}

at::Tensor torch_ltc::traceView(const OpRecord &record,
                                c10::ArrayRef<IValue> arguments) {
  noteNewCustomOps();
  std::vector<at::Tensor> results =
      traceCall(record, arguments, Otherwise::Nothing);
  if (results.empty())
    return at::Tensor();
  noteTracedCall(record, arguments, results);
  return std::move(results[0]);
}

std::vector<at::Tensor> torch_ltc::traceOp(const OpRecord &record,
                                           c10::ArrayRef<IValue> arguments) {
  noteNewCustomOps();
  std::vector<at::Tensor> results =
      traceCall(record, arguments, Otherwise::RunEagerly);
  noteTracedCall(record, arguments, results);
  return results;
}

void torch_ltc::noteInPlace(const OpRecord &record) {
  // Functionalization excludes its own key when it runs an op on Meta tensors;
  // a user's call on Meta tensors doesn't exclude the key.
  if (c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::Functionalize))
    inPlaceRecord = &record;
}

void torch_ltc::markInPlace(const at::Tensor &result) {
  TensorDataPtr data = tensorDataOf(result);
  torch::lazy::NodePtr node = data ? data->value().node : nullptr;
  if (node && !asGraphNode(node.get())->isData())
    static_cast<OpNode &>(*node).markInPlace();
}

at::Tensor torch_ltc::traceOp(const std::string &name,
                              std::initializer_list<IValue> arguments) {
  // Complete the list with the record's default values.
  const OpRecord &record = getOpRecord(name);
  c10::SmallVector<IValue, 8> all(arguments.begin(), arguments.end());
  while (all.size() < record.arguments.size()) {
    const ArgumentSpec &spec = record.arguments[all.size()];
    all.push_back(spec.defaultValue.value_or(IValue()));
  }
  return traceOp(record, all)[0];
}
