//===- result_memory.cpp - Memory of interpreted results ------------------===//

#include "programs/result_memory.h"

#include "programs/temporary_values.h"

#include <algorithm>

using namespace torch_ltc;

namespace {

constexpr size_t none = SIZE_MAX;

/// Whether the op may raise an error for some values of its operands.
bool mayFail(const OpRecord &record) {
  if (record.checksValues || record.divides)
    return true;
  switch (record.family) {
  case Family::constructor:
  case Family::convolution:
  case Family::data_movement:
  case Family::elementwise:
  case Family::linear:
  case Family::normalization:
  case Family::reduction:
    return false;
  default:
    return true;
  }
}

/// Whether the value has this shape, and nothing else uses its memory, which
/// torch's allocator for the CPU has allocated.
bool ownsWholeMemory(const at::Tensor &value, const torch::lazy::Shape &shape) {
  if (value.use_count() != 1 || value.sizes() != shape.sizes() ||
      value.scalar_type() != shape.scalar_type() || value.is_neg() ||
      value.is_conj())
    return false;
  const c10::Storage &storage = value.storage();
  return storage.use_count() == 1 && storage.nbytes() == value.nbytes() &&
         storage.resizable() &&
         storage.unsafeGetStorageImpl()->pyobj_slot()->load_pyobj() == nullptr;
}

} // namespace

void *ResultAddresses::at(size_t result) {
  void *&address = addresses[result];
  if (address || buffers.empty())
    return address;
  try {
    buffers[result]->materialize();
  } catch (const c10::Error &error) {
    throw RunError(error.what_without_backtrace(), /*parametersIntact=*/true,
                   kindOf(error));
  }
  return address = buffers[result]->data();
}

bool ResultAddresses::give(size_t result, const at::Tensor &value) {
  if (buffers.empty() || addresses[result] || buffers[result]->data())
    return false;
  addresses[result] = value.data_ptr();
  buffers[result]->take(value, isPooled(value));
  return true;
}

ResultMemory::ResultMemory(const GraphSnapshot &graph,
                           std::vector<OutputPlan> &resultPlans)
    : graph(graph), nodes(graph.parameters.size(), none),
      lastReaders(graph.parameters.size(), 0) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const SnapshotNode &node = graph.nodes[i];
    if (!node.record) {
      nodes[node.parameter] = i;
      continue;
    }
    if (mayFail(*node.record))
      lastFailing = i;
    for (uint32_t k = 0; k < node.numOperands; ++k) {
      const SnapshotNode &operand =
          graph.nodes[graph.operands[node.firstOperand + k].position];
      if (!operand.record)
        lastReaders[operand.parameter] = i;
    }
  }
  std::vector<bool> isTaken(graph.parameters.size(), false);
  for (size_t i = 0; i < graph.results.size(); ++i) {
    ResultRef result = graph.results[i];
    if (!graph.nodes[result.position].record) {
      // A result that is a parameter is copied at the end.
      lastReaders[graph.nodes[result.position].parameter] = none;
      continue;
    }
    std::vector<size_t> &numbers = outputsOfNodes[result.position];
    numbers.resize(graph.nodes[result.position].shapes.size(), none);
    numbers[result.index] = i;
    OutputPlan &plan = resultPlans[i];
    if (!plan.updatedParameter)
      continue;
    const size_t parameter = *plan.updatedParameter;
    if (!graph.parameters[parameter].donatable || isTaken[parameter] ||
        !(graph.parameters[parameter].shape == graph.shape(result)))
      continue;
    isTaken[parameter] = true;
    plan.place = OutputPlace::Donated;
    plan.parameter = parameter;
  }
  plans = resultPlans;
}

bool ResultMemory::mayOverwrite(size_t position, size_t index, size_t output,
                                const Values &values) const {
  const SnapshotNode &node = graph.nodes[position];
  const size_t parameter = plans[output].parameter;
  if (position < lastFailing || lastReaders[parameter] != position ||
      node.record->family != Family::elementwise)
    return false;
  // The op must read the old value element by element, only where it writes the
  // new one.
  auto operands =
      c10::ArrayRef(graph.operands).slice(node.firstOperand, node.numOperands);
  const size_t parameterNode = nodes[parameter];
  if (std::ranges::count(operands, parameterNode, &ResultRef::position) != 1)
    return false;
  const std::vector<size_t> &updates = node.record->updates;
  const size_t updated =
      updates.empty() ? 0 : updates[std::min(index, updates.size() - 1)];
  if (updated >= operands.size() || operands[updated].position != parameterNode)
    return false;
  // No view of the parameter may be alive.
  const std::vector<at::Tensor> &value = values[parameterNode];
  return !value.empty() && value[0].storage().use_count() == 1;
}

std::vector<at::Tensor> ResultMemory::ofNode(size_t position,
                                             const Values &values,
                                             ResultAddresses &addresses) const {
  std::vector<at::Tensor> tensors;
  auto found = outputsOfNodes.find(position);
  if (addresses.empty() || found == outputsOfNodes.end())
    return tensors;
  for (size_t i = 0; i < found->second.size(); ++i) {
    const size_t output = found->second[i];
    if (output == none || (plans[output].place == OutputPlace::Donated &&
                           !mayOverwrite(position, i, output, values)))
      return {};
    tensors.push_back(
        tensorAt(addresses.at(output), graph.nodes[position].shapes[i]));
  }
  return tensors;
}

bool ResultMemory::overwrites(size_t position) const {
  auto found = outputsOfNodes.find(position);
  return found != outputsOfNodes.end() &&
         std::ranges::any_of(found->second, [&](size_t output) {
           return output != none && plans[output].place == OutputPlace::Donated;
         });
}

void ResultMemory::store(size_t position, Values &values,
                         ResultAddresses &addresses) const {
  auto found = outputsOfNodes.find(position);
  if (addresses.empty() || found == outputsOfNodes.end())
    return;
  for (size_t i = 0; i < found->second.size(); ++i) {
    const size_t output = found->second[i];
    if (output == none || plans[output].place == OutputPlace::Donated)
      continue;
    at::Tensor &value = values[position][i];
    // A value that isn't contiguous isn't moved: its strides may be faster for
    // its readers.
    if (value.numel() == 0 || !value.is_contiguous())
      continue;
    const torch::lazy::Shape &shape = graph.nodes[position].shapes[i];
    if ((ownsWholeMemory(value, shape) && addresses.give(output, value)) ||
        value.const_data_ptr() == addresses.at(output))
      continue;
    value = tensorAt(addresses.at(output), shape).copy_(value);
  }
}

void ResultMemory::fill(Values &values, ResultAddresses &addresses) const {
  std::vector<std::pair<at::Tensor, at::Tensor>> updates;
  for (size_t i = 0; i < graph.results.size(); ++i) {
    ResultRef ref = graph.results[i];
    const at::Tensor &value = values[ref.position][ref.index];
    const bool isInPlace =
        value.numel() != 0 && value.const_data_ptr() == addresses.at(i);
    if (isInPlace && value.is_contiguous())
      continue;
    at::Tensor output = tensorAt(addresses.at(i), graph.shape(ref));
    // Stores zeros for statistics that an op's CPU kernel leaves empty although
    // its Meta kernel gives them a size (batch norm in evaluation mode).
    if (value.numel() == 0)
      output.zero_();
    else if (plans[i].place != OutputPlace::Donated)
      // A kernel may have stored the elements in the output in a different
      // order.
      output.copy_(isInPlace ? value.clone() : value);
    else // the value may be in the memory of another overwritten parameter
      updates.emplace_back(output,
                           value.storage().resizable() ? value : value.clone());
  }
  for (auto &[output, value] : updates)
    output.copy_(value);
}
