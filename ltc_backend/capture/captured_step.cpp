//===- captured_step.cpp - Analysis of the recordings of a step -----------===//

#include "capture/captured_step.h"

#include "compilation/external_backend.h"
#include "distributed/traced_collective.h"
#include "memory/blocking.h"

#include <cstring>
#include <sstream>
#include <unordered_map>

using namespace torch_ltc;

namespace {

std::string text(const torch::lazy::Shape &shape) {
  std::ostringstream stream;
  stream << c10::toString(shape.scalar_type()) << " " << shape.sizes();
  return stream.str();
}

/// Whether both are defined and have the same dtype, sizes and bytes.
bool hasSameContent(const at::Tensor &a, const at::Tensor &b) {
  return a.defined() && b.defined() && a.scalar_type() == b.scalar_type() &&
         a.sizes() == b.sizes() &&
         (a.nbytes() == 0 || // then the pointers may be null
          std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

} // namespace

CapturedStep::CapturedStep(const StepData &first, const Recording &second,
                           const std::vector<at::Tensor> &argumentTensors,
                           std::vector<KnownTensor> known,
                           const std::vector<at::Tensor> &returned,
                           std::vector<at::Tensor> stepCounts,
                           GeneralStepPtr general)
    : general(std::move(general)), arguments(second.arguments),
      numbers(second.scalars), stepCounts(std::move(stepCounts)),
      backend(selectedBackendGeneration()), environment(second.environment) {
  std::vector<int64_t> recordedSizes;
  for (const Recording::Argument &argument : arguments)
    recordedSizes.insert(recordedSizes.end(), argument.sizes.begin(),
                         argument.sizes.end());
  addSizesOf(std::move(recordedSizes), second.program, second.graph,
             second.resultShapes);
  for (const at::Tensor &count : this->stepCounts)
    expectedCounts.push_back(*count.const_data_ptr<float>());
  for (const auto &draw : second.draws)
    draws.push_back(draw.second);
  for (KnownTensor &tensor : known)
    addSlot(tensor.tensor, std::move(tensor.name));
  for (const at::Tensor &tensor : second.receivers())
    if (std::none_of(slots.begin(), slots.end(), [&](const Slot &slot) {
          return slot.tensor.is_same(tensor);
        }))
      addSlot(tensor, "a tensor that a collective writes");
  if (second.program->numCollectives)
    addOrder();
  for (const torch::lazy::Shape &shape : second.resultShapes)
    outputs.emplace_back().shape = shape;
  findOrigins(first, second);
  findStates(second);
  findWrittenArguments(second, argumentTensors);
  findReturned(second, argumentTensors, returned);
  for (Slot &slot : slots)
    slot.expected = slot.data->data();
  std::string problem = checkSlots();
  TORCH_CHECK(problem.empty(), problem);
}

void CapturedStep::addSlot(const at::Tensor &tensor, std::string name) {
  auto *shared = sharedStorageOf(tensor);
  at::Tensor inner = shared ? shared->base() : innerOf(tensor);
  slots.push_back({.tensor = tensor,
                   .name = std::move(name),
                   .inner = inner,
                   .data = tensorDataOf(inner),
                   .isShared = shared != nullptr});
  // Also adds a slot for the view's value: if a step only reads the view, the
  // step's parameter is this value, not the base's.
  at::Tensor values = innerOf(tensor);
  if (shared && !values.is_same(inner))
    slots.push_back({.tensor = tensor,
                     .name = slots.back().name,
                     .inner = values,
                     .data = tensorDataOf(values),
                     .isView = true});
}

void CapturedStep::addOrder() {
  std::lock_guard<TraceLock> lock(traceLock);
  at::Tensor order = scheduledOrder();
  slots.push_back({.tensor = order,
                   .name = "the order of collectives",
                   .inner = order,
                   .data = tensorDataOf(order),
                   .isOrder = true});
  collectives = lastPlaces(sizes.front().program->numCollectives);
}

void CapturedStep::findStates(const Recording &second) {
  std::unordered_multimap<TensorData *, size_t> slotsByData;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].isView)
      continue;
    slotsByData.emplace(slots[i].data.get(), i);
    TensorDataPtr base = baseOf(slots[i].tensor);
    if (base && base != slots[i].data)
      slotsByData.emplace(base.get(), i);
  }
  for (size_t i = 0; i < second.roots.size(); ++i) {
    TensorDataPtr root = second.roots[i].lock();
    auto [begin, end] = slotsByData.equal_range(root.get());
    if (!root || begin == end)
      continue;
    Output &output = outputs[second.resultOfRoot[i]];
    for (auto found = begin; found != end; ++found) {
      Slot &slot = slots[found->second];
      slot.isWritten = true;
      if (root == slot.data)
        output.slots.push_back(found->second);
    }
    output.states.push_back(std::move(root));
  }
  for (Parameter &parameter : parameters) {
    if (parameter.origin == Origin::Constant)
      slots[parameter.index].isRead = true;
    if (parameter.origin != Origin::Result)
      continue;
    Output &output = outputs[parameter.index];
    output.isState = true;
    TORCH_CHECK(!output.slots.empty(), "a tensor (", text(output.shape),
                ") that one step passes to the next is neither a parameter, a "
                "buffer nor an optimizer's state that the function refers to");
  }
}

void CapturedStep::findWrittenArguments(
    const Recording &second, const std::vector<at::Tensor> &tensors) {
  std::unordered_map<TensorData *, size_t> argumentOfData;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::string name = "tensor " + std::to_string(i) + " of the arguments";
    TORCH_CHECK(tensors[i].sizes() ==
                        c10::ArrayRef<int64_t>(arguments[i].sizes) &&
                    tensors[i].scalar_type() == arguments[i].dtype,
                "it changes the shape of ", name);
    if (!arguments[i].isLazy)
      continue;
    argumentOfData.emplace(tensorDataOf(tensors[i]).get(), i);
    if (TensorDataPtr base = baseOf(tensors[i]))
      argumentOfData.emplace(base.get(), i);
    for (const Slot &slot : slots)
      TORCH_CHECK(!isSame(arguments[i].data, slot.data->data()), name,
                  " has the value of ", slot.name,
                  ", to which the function refers: a replay couldn't "
                  "distinguish the two");
  }
  for (size_t i = 0; i < second.roots.size(); ++i) {
    TensorDataPtr root = second.roots[i].lock();
    auto found = root ? argumentOfData.find(root.get()) : argumentOfData.end();
    if (found == argumentOfData.end())
      continue;
    Recording::Argument &argument = arguments[found->second];
    if (!std::exchange(argument.isWritten, true))
      outputs[second.resultOfRoot[i]].arguments.push_back(found->second);
  }
  std::string problem = checkWritten(tensors);
  TORCH_CHECK(problem.empty(), problem);
}

void CapturedStep::findReturned(const Recording &second,
                                const std::vector<at::Tensor> &argumentTensors,
                                const std::vector<at::Tensor> &returned) {
  auto placeOf = [](const std::vector<at::Tensor> &tensors,
                    const at::Tensor &tensor, size_t end) {
    size_t place = 0;
    while (place < end && !tensors[place].is_same(tensor))
      ++place;
    return place;
  };
  for (size_t r = 0; r < returned.size(); ++r) {
    const at::Tensor &tensor = returned[r];
    if (size_t i = placeOf(returned, tensor, r); i < r) {
      returns.push_back({Returned::Again, i, {}, false});
      continue;
    }
    size_t argument = placeOf(argumentTensors, tensor, argumentTensors.size());
    if (argument < argumentTensors.size()) {
      returns.push_back({Returned::Argument, argument, {}, false});
      continue;
    }
    auto slot = std::find_if(slots.begin(), slots.end(), [&](const Slot &slot) {
      return slot.tensor.is_same(tensor);
    });
    if (slot != slots.end()) {
      slot->isRead = true;
      returns.push_back(
          {Returned::Known, size_t(slot - slots.begin()), {}, false});
      continue;
    }
    TORCH_CHECK(tensor.device().is_lazy(), "it returns a tensor on the CPU");
    HostDataPtr data = tensorDataOf(tensor)->data();
    size_t result = 0;
    while (result < second.data.results.size() &&
           second.data.results[result].lock() != data)
      ++result;
    TORCH_CHECK(result < second.data.results.size(), "it returns a tensor (",
                text(data->shape()),
                ") that the step neither computes nor receives");
    TORCH_CHECK(tensor.storage().use_count() <= 1,
                "it returns a view or an alias of another tensor (",
                text(data->shape()), "): return a copy");
    outputs[result].isReturned = true;
    returns.push_back(
        {Returned::Result,
         result,
         {Strides(tensor.strides()), tensor.sym_storage_offset().expect_int()},
         tensor.requires_grad()});
  }
}

/// Finds the second step's result that continues the order of collectives. The
/// order that this step reads needn't be a result of the first recording: other
/// collectives may have continued it between the two steps.
std::optional<std::pair<CapturedStep::Origin, size_t>>
CapturedStep::resultOfOrder(const Recording &second) const {
  auto slot = std::find_if(slots.begin(), slots.end(),
                           [](const Slot &slot) { return slot.isOrder; });
  if (slot == slots.end())
    return std::nullopt;
  for (size_t i = 0; i < second.roots.size(); ++i)
    if (second.roots[i].lock() == slot->data)
      return std::pair{Origin::Result, size_t(second.resultOfRoot[i])};
  return std::nullopt;
}

std::optional<std::pair<CapturedStep::Origin, size_t>> CapturedStep::originOf(
    size_t parameter, const StepData &first, const Recording &second,
    const std::unordered_map<const HostData *, size_t> &constants) const {
  const WeakData &data = second.data.parameters[parameter];
  for (size_t i = 0; i < second.arguments.size(); ++i) {
    const Recording::Argument &argument = second.arguments[i];
    if (argument.isLazy && isSame(argument.data, data))
      return std::pair{Origin::Argument, i};
    for (const Recording::Upload &upload : second.uploads)
      if (!argument.isLazy && argument.impl == upload.source &&
          isSame(upload.data, data))
        return std::pair{Origin::Argument, i};
  }
  for (size_t i = 0; i < second.draws.size(); ++i)
    if (isSame(second.draws[i].first, data))
      return std::pair{Origin::Draw, i};
  for (size_t i = 0; i < first.results.size(); ++i)
    if (isSame(first.results[i], data))
      return std::pair{Origin::Result, i};
  if (isSame(second.order, data))
    return resultOfOrder(second);
  HostDataPtr alive = data.lock();
  if (alive && isSame(first.parameters[parameter], data))
    if (auto slot = constants.find(alive.get()); slot != constants.end())
      return std::pair{Origin::Constant, slot->second};
  if (hasSameContent(first.uploads[parameter], second.data.uploads[parameter]))
    return std::pair{Origin::Upload, parameter};
  return std::nullopt;
}

void CapturedStep::findOrigins(const StepData &first, const Recording &second) {
  std::unordered_map<const HostData *, size_t> constants;
  for (size_t i = 0; i < slots.size(); ++i)
    if (HostDataPtr data = slots[i].data->data())
      constants.emplace(data.get(), i);
  for (size_t k = 0; k < second.data.parameters.size(); ++k) {
    const torch::lazy::Shape &shape = second.parameterShapes[k];
    auto found = originOf(k, first, second, constants);
    TORCH_CHECK(found, "it reads a tensor (", text(shape),
                ") that is neither an argument nor a tensor that the function "
                "refers to; tensors moved from the CPU must be arguments");
    auto [origin, index] = *found;
    if (origin == Origin::Upload) {
      uploads.push_back(HostData::copyOf(second.data.uploads[index]));
      index = uploads.size() - 1;
    }
    parameters.push_back({origin, index, shape});
  }
}

void CapturedStep::bindScalar(size_t scalar, size_t expression) {
  TORCH_CHECK(scalar < numbers.size(), "There is no scalar ", scalar, ".");
  boundScalars.emplace_back(scalar, expression);
}
