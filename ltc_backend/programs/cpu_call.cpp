//===- cpu_call.cpp - The CPU kernels that compute traced ops -------------===//

#include "programs/cpu_call.h"

#include <mutex>
#include <unordered_map>

using namespace torch_ltc;

namespace {

/// Whether the op reads its operand's memory instead of its elements.
bool readsMemory(const OpRecord &record) {
  return record.shapeRule == ShapeRule::as_stridedShape ||
         record.shapeRule == ShapeRule::as_strided_scatterShape;
}

/// Returns the op that the compiler gets instead of the traced op; none if the
/// traced op itself is called. Values of a graph never change, so a view can
/// replace a copy.
std::optional<c10::OperatorHandle> substituteFor(const OpRecord &record) {
  if (readsMemory(record))
    return std::nullopt;
  c10::OperatorName name{"aten::reshape", ""};
  if (record.shapeRule != ShapeRule::viewShape) {
    std::string emitted = record.emitName; // "aten.select.int"
    emitted.replace(emitted.find('.'), 1, "::");
    name = torch::jit::parseName(emitted);
  }
  auto handle = c10::Dispatcher::singleton().findSchema(name);
  if (!handle || handle->operator_name() == record.handle->operator_name() ||
      handle->schema().arguments().size() != record.arguments.size())
    return std::nullopt;
  return handle;
}

/// Returns the overload with additional arguments for the results' memory, if
/// it has a CPU kernel that isn't composed of the functional op and a copy.
std::optional<c10::OperatorHandle> findOutOp(const OpRecord &record) {
  if (!record.plainOut)
    return std::nullopt;
  const c10::FunctionSchema &schema = record.handle->schema();
  size_t numArguments = schema.arguments().size();
  for (const std::string &overload :
       {std::string("out"), std::string("grad_input"),
        schema.overload_name() + "_out"}) {
    auto found =
        c10::Dispatcher::singleton().findSchema({schema.name(), overload});
    if (!found || !found->hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
        found->schema().arguments().size() != numArguments + record.numResults)
      continue;
    bool isSame = true;
    for (size_t i = 0; i < numArguments; ++i)
      isSame = isSame && *schema.arguments()[i].type() ==
                             *found->schema().arguments()[i].type();
    if (isSame)
      return found;
  }
  return std::nullopt;
}

/// For `select_scatter` and `slice_scatter`, returns the op that views the
/// replaced part; none for all other ops. The view op has the same arguments
/// without the second one, the new part.
std::optional<c10::OperatorHandle> findWrittenView(const OpRecord &record) {
  auto &dispatcher = c10::Dispatcher::singleton();
  switch (record.shapeRule) {
  case ShapeRule::select_scatterShape:
    return dispatcher.findSchema({"aten::select", "int"});
  case ShapeRule::slice_scatterShape:
    return dispatcher.findSchema({"aten::slice", "Tensor"});
  default:
    return std::nullopt;
  }
}

CpuCall findCpuCall(const OpRecord &record) {
  CpuCall call{.op = *record.handle};
  if (std::optional<c10::OperatorHandle> other = substituteFor(record))
    call.op = *other;
  else
    call.outOp = findOutOp(record);
  call.writtenView = findWrittenView(record);
  call.readsMemory = readsMemory(record);
  return call;
}

} // namespace

const CpuCall &torch_ltc::cpuCallOf(const OpRecord &record) {
  static auto *known = new std::unordered_map<const OpRecord *, CpuCall>;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = known->find(&record);
  if (found == known->end())
    found = known->emplace(&record, findCpuCall(record)).first;
  return found->second;
}
