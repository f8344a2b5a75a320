//===- interpreted_program.cpp - A graph, op by op, on the CPU ------------===//

#include "executor/program.h"

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/stack.h>

#include <cstring>
#include <stdexcept>

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
      : graph(graph), values(values), scalars(scalars),
        operand(node.firstOperand), scalar(node.firstScalar) {}

  IValue build(const Attribute &attribute, const ArgumentSpec &spec) {
    switch (attribute.tag) {
    case Tag::none:
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
    case Tag::numberTensor:
      return numberTensor(attribute);
    }
    return IValue();
  }

private:
  at::Tensor nextOperand() {
    ResultRef ref = graph.operands[operand++];
    return values[ref.position][ref.index];
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

} // namespace

InterpretedProgram::InterpretedProgram(GraphSnapshotPtr snapshot)
    : graph(std::move(snapshot)) {
  name = graph->name;
  numOps = graph->numOps;
  for (ResultRef result : graph->results)
    outputs.emplace_back().updatedParameter = updatedParameter(*graph, result);
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
    throw RunError(node.record->name + ": " + error.what_without_backtrace() +
                       messageSuffix(node.location),
                   /*parametersIntact=*/true);
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

void InterpretedProgram::run(c10::ArrayRef<void *> parameters,
                             c10::ArrayRef<DynamicScalar> scalars,
                             c10::ArrayRef<void *> outputPointers,
                             const RunConditions &) {
  std::vector<std::vector<at::Tensor>> values =
      interpretGraph(*graph, parameters, scalars);
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
}
