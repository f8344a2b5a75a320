//===- interpreted_program.cpp - A graph, op by op, on the CPU ------------===//

#include "programs/interpreted_program.h"

#include "programs/worker_state.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/stack.h>

#include <chrono>
#include <string_view>

using namespace torch_ltc;
using c10::IValue;

namespace {

at::TensorOptions optionsOf(const torch::lazy::Shape &shape) {
  return at::TensorOptions().dtype(shape.scalar_type()).device(c10::kCPU);
}

/// The arguments of one op as the dispatcher wants them.
class ArgumentBuilder {
public:
  ArgumentBuilder(const GraphSnapshot &graph, const SnapshotNode &node,
                  const std::vector<std::vector<at::Tensor>> &values,
                  c10::ArrayRef<DynamicScalar> scalars)
      : graph(graph), node(node), values(values), scalars(scalars),
        operand(node.firstOperand), scalar(node.firstScalar) {}

  IValue build(const Attribute &attribute, const ArgumentSpec &spec) {
    switch (attribute.tag) {
    case Tag::none:
      // The default dtype may be another one by now.
      if (spec.kind == ArgumentKind::DType && !node.record->hasTensorArgument)
        return int64_t(node.shapes[0].scalar_type());
      return spec.defaultValue && !spec.defaultValue->isNone()
                 ? *spec.defaultValue
                 : IValue();
    case Tag::operand:
      return nextOperand();
    case Tag::operandList:
      return operandList(attribute);
    case Tag::optionalOperandList:
      return optionalOperandList(attribute);
    case Tag::integer:
    case Tag::dtype:
      return attribute.integer();
    case Tag::floating:
      return attribute.floating();
    case Tag::boolean:
      return attribute.boolean();
    case Tag::integers:
      return attribute.integers().vec();
    case Tag::floatings: {
      std::vector<double> list;
      for (size_t i = 0; i < attribute.count; ++i)
        list.push_back(attribute.floatingAt(i));
      return list;
    }
    case Tag::booleans: {
      c10::List<bool> list;
      for (size_t i = 0; i < attribute.count; ++i)
        list.push_back(attribute.payload[i] != 0);
      return list;
    }
    case Tag::string:
      return attribute.string();
    case Tag::dynamicInt:
      return scalars[scalar++].asInt;
    case Tag::dynamicFloat:
      return scalars[scalar++].asFloat;
    case Tag::dynamicIntegers: {
      std::vector<int64_t> list;
      for (size_t i = 0; i < attribute.count; ++i)
        list.push_back(scalars[scalar++].asInt);
      return list;
    }
    case Tag::numberTensor:
      return numberTensor(attribute);
    }
    return IValue();
  }

private:
  at::Tensor nextOperand() {
    ResultRef ref = graph.operands[operand++];
    const at::Tensor &value = values[ref.position][ref.index];
    // Integers become numbers of the type that was the default.
    if ((node.record->dtypeRule == DTypeRule::promote_floatDType ||
         node.record->dtypeRule == DTypeRule::div_modeDType) &&
        c10::isFloatingType(node.shapes[0].scalar_type()) &&
        c10::isIntegralType(value.scalar_type(), /*includeBool=*/true))
      return value.to(node.shapes[0].scalar_type());
    return value;
  }

  IValue operandList(const Attribute &attribute) {
    c10::List<at::Tensor> list;
    for (size_t i = 0; i < attribute.count; ++i)
      list.push_back(nextOperand());
    return list;
  }

  IValue optionalOperandList(const Attribute &attribute) {
    c10::List<std::optional<at::Tensor>> list;
    for (size_t i = 0; i < attribute.count; ++i)
      list.push_back(attribute.isPresent(i) ? std::optional(nextOperand())
                                            : std::nullopt);
    return list;
  }

  IValue numberTensor(const Attribute &attribute) {
    const DynamicScalar &number = scalars[scalar++];
    at::Scalar value =
        number.isFloat ? at::Scalar(number.asFloat) : at::Scalar(number.asInt);
    return at::scalar_tensor(
        value, at::TensorOptions().dtype(c10::ScalarType(attribute.small)));
  }

  const GraphSnapshot &graph;
  const SnapshotNode &node;
  const std::vector<std::vector<at::Tensor>> &values;
  c10::ArrayRef<DynamicScalar> scalars;
  uint32_t operand, scalar;
};

void appendResults(const IValue &value, std::vector<at::Tensor> &results) {
  if (value.isTensorList())
    for (const at::Tensor &tensor : value.toTensorVector())
      results.push_back(tensor);
  else
    results.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
}

/// Another schema that computes the same, null if there is none. Values of a
/// graph never change, so a view does where the graph has a copy.
std::optional<c10::OperatorHandle> substituteFor(const OpRecord &record) {
  constexpr std::string_view suffix = "_copy";
  c10::OperatorName name = record.handle->operator_name();
  if (record.name == "aten::view_copy" || record.name == "aten::_unsafe_view" ||
      record.name == "aten::_reshape_copy")
    name.name = "aten::reshape"; // of a value that may be a view by now
  else if (record.name == "aten::_efficientzerotensor")
    name.name = "aten::zeros"; // views of the former have no memory to read
  else if ((record.family == Family::data_movement ||
            record.name == "aten::detach_copy" ||
            record.name == "aten::alias_copy") &&
           name.name.ends_with(suffix) && name.name != "aten::view_copy" &&
           name.name != "aten::as_strided_copy")
    name.name.resize(name.name.size() - suffix.size());
  else
    return std::nullopt;
  auto handle = c10::Dispatcher::singleton().findSchema(name);
  if (!handle || handle->schema().arguments().size() != record.arguments.size())
    return std::nullopt;
  return handle;
}

/// Whether the op reads its operand's memory and not its elements.
bool readsMemory(const OpRecord &record) {
  return record.name.starts_with("aten::as_strided");
}

/// Of strides these read wrong elements or refuse; other kernels know them.
bool wantsContiguous(const OpRecord &record) {
  return record.family == Family::normalization ||
         record.family == Family::loss || record.family == Family::embedding ||
         record.name.find("attention") != std::string::npos;
}

void makeContiguous(torch::jit::Stack &stack) {
  for (IValue &value : stack)
    if (value.isTensor() && value.toTensor().defined())
      value = value.toTensor().contiguous();
}

bool holdsTensors(Tag tag) {
  return tag == Tag::operand || tag == Tag::operandList ||
         tag == Tag::optionalOperandList;
}

bool isNumberOfRun(Tag tag) {
  return tag == Tag::dynamicInt || tag == Tag::dynamicFloat ||
         tag == Tag::dynamicIntegers || tag == Tag::numberTensor;
}

RunError errorOf(const SnapshotNode &node, LocationId location,
                 const c10::Error &error) {
  return RunError(node.record->name + ": " + error.what_without_backtrace() +
                      (location ? messageSuffix(location)
                                : "; option source_info shows the Python line"),
                  /*parametersIntact=*/true, kindOf(error));
}

} // namespace

PreparedCall::PreparedCall(const GraphSnapshot &graph, size_t position)
    : op(*graph.nodes[position].record->handle) {
  const SnapshotNode &node = graph.nodes[position];
  if (auto substitute = substituteFor(*node.record))
    op = *substitute;
  readsMemory = ::readsMemory(*node.record);
  wantsContiguous = ::wantsContiguous(*node.record);
  ArgumentBuilder constants(graph, node, {}, {});
  AttributeReader reader(node.attributes->words);
  for (const ArgumentSpec &spec : node.record->arguments) {
    Attribute attribute = reader.next();
    if (holdsTensors(attribute.tag) || isNumberOfRun(attribute.tag)) {
      varying.emplace_back(uint32_t(arguments.size()), attribute);
      arguments.emplace_back();
    } else {
      arguments.push_back(constants.build(attribute, spec));
    }
  }
}

InterpretedProgram::InterpretedProgram(GraphSnapshotPtr snapshot)
    : graph(std::move(snapshot)) {
  name = graph->name;
  numOps = graph->numOps;
  for (ResultRef result : graph->results)
    outputs.emplace_back().updatedParameter = updatedParameter(*graph, result);
  std::vector<bool> isNeeded(graph->nodes.size(), false);
  for (ResultRef result : graph->results)
    isNeeded[result.position] = true;
  calls.resize(graph->nodes.size());
  for (size_t i = graph->nodes.size(); i-- > 0;) {
    const SnapshotNode &node = graph->nodes[i];
    if (!node.record)
      continue;
    calls[i] = std::make_unique<PreparedCall>(*graph, i);
    for (uint32_t k = 0; k < node.numOperands; ++k) {
      uint32_t operand = graph->operands[node.firstOperand + k].position;
      if (!isNeeded[operand])
        calls[i]->lastUses.push_back(operand);
      isNeeded[operand] = true;
    }
  }
}

std::vector<at::Tensor>
torch_ltc::interpretNode(const GraphSnapshot &graph, size_t position,
                         const std::vector<std::vector<at::Tensor>> &values,
                         c10::ArrayRef<DynamicScalar> scalars) {
  const SnapshotNode &node = graph.nodes[position];
  ArgumentBuilder builder(graph, node, values, scalars);
  AttributeReader reader(node.attributes->words);
  torch::jit::Stack stack;
  for (const ArgumentSpec &spec : node.record->arguments)
    stack.push_back(builder.build(reader.next(), spec));
  try {
    node.record->handle->redispatchBoxed(
        c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  } catch (const c10::Error &error) {
    throw errorOf(node, node.location, error);
  }
  std::vector<at::Tensor> results;
  for (const IValue &value : stack)
    appendResults(value, results);
  return results;
}

std::vector<std::vector<at::Tensor>> torch_ltc::interpretGraph(
    const GraphSnapshot &graph, c10::ArrayRef<void *> parameters,
    c10::ArrayRef<DynamicScalar> scalars, const NodeVisitor &visit) {
  at::AutoDispatchBelowAutograd noAutograd;
  std::vector<std::vector<at::Tensor>> values(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const SnapshotNode &node = graph.nodes[i];
    if (node.record)
      values[i] = interpretNode(graph, i, values, scalars);
    else
      values[i].push_back(at::from_blob(parameters[node.parameter],
                                        node.shapes[0].sizes(),
                                        optionsOf(node.shapes[0])));
    if (visit && !visit(i, values[i]))
      break;
  }
  return values;
}

void InterpretedProgram::call(size_t position,
                              std::vector<std::vector<at::Tensor>> &values,
                              c10::ArrayRef<DynamicScalar> scalars,
                              LocationId location) const {
  const SnapshotNode &node = graph->nodes[position];
  const PreparedCall &prepared = *calls[position];
  if (prepared.readsMemory) {
    ResultRef operand = graph->operands[node.firstOperand];
    at::Tensor &value = values[operand.position][operand.index];
    value = value.contiguous();
  }
  ArgumentBuilder builder(*graph, node, values, scalars);
  torch::jit::Stack stack = prepared.arguments;
  for (const auto &[index, attribute] : prepared.varying)
    stack[index] = builder.build(attribute, node.record->arguments[index]);
  if (prepared.wantsContiguous)
    makeContiguous(stack);
  try {
    prepared.op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU),
                                &stack);
  } catch (const c10::Error &error) {
    throw errorOf(node, location, error);
  }
  for (const IValue &value : stack)
    appendResults(value, values[position]);
  stack.clear();
  for (uint32_t unused : prepared.lastUses)
    values[unused].clear();
}

std::vector<std::vector<at::Tensor>>
InterpretedProgram::evaluate(c10::ArrayRef<void *> parameters,
                             c10::ArrayRef<DynamicScalar> scalars,
                             const RunConditions &conditions) const {
  // torch's setting is per thread, and steps have a thread of their own.
  if (at::get_num_threads() != conditions.threads)
    at::set_num_threads(conditions.threads);
  at::AutoDispatchBelowAutograd noAutograd;
  std::vector<std::vector<at::Tensor>> values(graph->nodes.size());
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    const SnapshotNode &node = graph->nodes[i];
    if (node.record)
      call(i, values, scalars,
           conditions.locations.empty() ? node.location
                                        : conditions.locations[i]);
    else
      values[i].push_back(at::from_blob(parameters[node.parameter],
                                        node.shapes[0].sizes(),
                                        optionsOf(node.shapes[0])));
  }
  return values;
}

void InterpretedProgram::run(c10::ArrayRef<void *> parameters,
                             c10::ArrayRef<DynamicScalar> scalars,
                             c10::ArrayRef<void *> outputPointers,
                             const RunConditions &conditions) {
  auto begin = std::chrono::steady_clock::now();
  WorkerStateGuard state;
  std::vector<std::vector<at::Tensor>> values =
      evaluate(parameters, scalars, conditions);
  at::AutoDispatchBelowAutograd noAutograd;
  for (size_t i = 0; i < graph->results.size(); ++i) {
    ResultRef ref = graph->results[i];
    const torch::lazy::Shape &shape = graph->shape(ref);
    const at::Tensor &value = values[ref.position][ref.index];
    at::Tensor output =
        at::from_blob(outputPointers[i], shape.sizes(), optionsOf(shape));
    // Statistics that an op's CPU kernel leaves empty although its Meta kernel
    // gives them a size (batch norm in evaluation).
    if (value.numel() == 0)
      output.zero_();
    else
      output.copy_(value);
  }
  secondsRun.fetch_add(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count());
}
