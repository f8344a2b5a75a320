//===- replay.cpp - Runs of a captured step -------------------------------===//

#include "capture/captured_step.h"

#include "compilation/external_backend.h"
#include "distributed/traced_collective.h"
#include "events/metrics.h"
#include "events/step_log.h"
#include "execution/step_executor.h"
#include "memory/running_step.h"

#include <ATen/ExpandUtils.h>
#include <ATen/FunctionalStorageImpl.h>
#include <torch/csrc/autograd/variable.h>

#include <cstring>

using namespace torch_ltc;

namespace {

/// The gradient function of those results of a replay that require gradients:
/// raises an error, because they have no autograd graph.
struct NoGraph final : torch::autograd::Node {
  torch::autograd::variable_list
  apply(torch::autograd::variable_list &&) override {
    TORCH_CHECK(false,
                "A tensor that a captured step returned has no autograd graph, "
                "because replays don't run autograd; call backward() "
                "inside the function, or don't capture it.");
  }
  std::string name() const override { return "CapturedStepBackward"; }
};

/// Whether the tensor has the strides that the recorded argument has, or would
/// have at the tensor's sizes.
bool hasRecordedLayout(const at::Tensor &tensor,
                       const Recording::Argument &recorded) {
  const at::IntArrayRef sizes = recorded.sizes, strides = recorded.strides;
  if (tensor.dim() != int64_t(sizes.size()))
    return false;
  if (tensor.sizes() == sizes)
    return tensor.strides() == strides;
  const bool wasContiguous = strides == packedStrides(sizes);
  if (tensor.strides() == strides)
    return tensor.is_contiguous() == wasContiguous;
  return at::IntArrayRef(at::infer_dense_strides(sizes, strides)) == strides &&
         at::IntArrayRef(at::infer_dense_strides(tensor.sizes(), strides)) ==
             tensor.strides();
}

} // namespace

/// Returns a message if a tensor that holds state or a constant has been
/// changed since the last step, or if a written one has an alias that wouldn't
/// see the new value; otherwise "".
std::string CapturedStep::checkSlots() {
  for (Slot &slot : slots) {
    if (!slot.isWritten && !slot.isRead)
      continue;
    if (slot.isOrder) {
      if (!scheduledOrder().is_same(slot.tensor))
        return "another thread or an error started a new sequence of "
               "collectives";
      continue;
    }
    auto *shared = sharedStorageOf(slot.tensor);
    // An alias wouldn't see a value that is assigned to the tensor.
    if (slot.isWritten && shared && !slot.isShared)
      return slot.name + " has a view or an alias";
    at::Tensor inner =
        slot.isShared && shared ? shared->base() : innerOf(slot.tensor);
    if (!inner.is_same(slot.inner) || !isSame(slot.data->data(), slot.expected))
      return slot.name + " was changed outside the step";
  }
  return "";
}

/// Returns a message if an argument that the step writes shares its value with
/// another tensor, which would keep the old value; otherwise "".
std::string
CapturedStep::checkWritten(const std::vector<at::Tensor> &tensors) const {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!arguments[i].isWritten)
      continue;
    std::string name = "tensor " + std::to_string(i) + " of the arguments";
    TensorDataPtr base = baseOf(tensors[i]);
    if (tensors[i].storage().use_count() > 1 ||
        (base && base->shapeValue().sizes() != tensors[i].sizes()))
      return name + ", which the step writes, has a view or an alias";
    for (size_t k = 0; k < tensors.size(); ++k)
      if (k != i && arguments[k].isLazy &&
          tensorDataOf(tensors[k])->data() == tensorDataOf(tensors[i])->data())
        return name + ", which the step writes, is passed twice";
  }
  return "";
}

std::string CapturedStep::checkCounts() const {
  for (size_t i = 0; i < stepCounts.size(); ++i)
    if (*stepCounts[i].const_data_ptr<float>() != expectedCounts[i])
      return "an optimizer's step count was changed";
  return "";
}

std::string
CapturedStep::checkArguments(const std::vector<at::Tensor> &tensors) const {
  if (tensors.size() != arguments.size())
    return "the number of tensors among the arguments changed";
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor &tensor = tensors[i];
    const Recording::Argument &recorded = arguments[i];
    std::string name = "tensor " + std::to_string(i) + " of the arguments";
    if (tensor.device().is_lazy() != recorded.isLazy)
      return name + " is on another device";
    if (tensor.scalar_type() != recorded.dtype)
      return name + " has a different dtype";
    if (!hasRecordedLayout(tensor, recorded))
      return name + " has different strides";
    if (recorded.isLazy && !tensorDataOf(tensor)->data())
      return name + " isn't computed yet";
    const at::Tensor &first = tensors[recorded.sameAs];
    if (recorded.isLazy
            ? tensorDataOf(first)->data() != tensorDataOf(tensor)->data()
            : !first.is_same(tensor))
      return name + " was the same as tensor " +
             std::to_string(recorded.sameAs) + ", and isn't any more";
  }
  return checkWritten(tensors);
}

HostDataPtr CapturedStep::valueOfState(size_t result) const {
  return outputs[result].states[0]->data();
}

void CapturedStep::addParameters(const std::vector<at::Tensor> &tensors,
                                 ScheduledStep &step) {
  std::vector<HostDataPtr> drawn;
  // Makes all draws, because those that the program doesn't read also advance
  // the generator.
  const Sizes &selected = sizes.front();
  for (size_t i = 0; i < draws.size(); ++i)
    drawn.push_back(HostData::takeOver(draws[i](
        selected.draws.empty() ? at::OptionalIntArrayRef()
                               : at::OptionalIntArrayRef(selected.draws[i]))));
  inputs.clear();
  for (size_t k = 0; k < parameters.size(); ++k) {
    const Parameter &parameter = parameters[k];
    HostDataPtr data;
    long holders = 1; // references that this function holds
    switch (parameter.origin) {
    case Origin::Argument:
      if (arguments[parameter.index].isLazy)
        data = tensorDataOf(tensors[parameter.index])->data();
      else
        data = HostData::copyOf(tensors[parameter.index]);
      break;
    case Origin::Draw:
      data = drawn[parameter.index];
      holders = 2;
      break;
    case Origin::Result:
      data = valueOfState(parameter.index);
      holders += long(outputs[parameter.index].states.size());
      break;
    case Origin::Constant:
      data = slots[parameter.index].data->data();
      break;
    case Origin::Upload:
      data = uploads[parameter.index];
      break;
    }
    bool mayOverwrite = data.use_count() == holders && !data->sharesBuffer();
    if (selected.isDonated[k] && !mayOverwrite) {
      // Another tensor holds this value: the program overwrites a copy.
      data->wait();
      BufferPtr copy = Buffer::allocate(data->buffer()->size());
      std::memcpy(copy->data(), data->buffer()->data(), copy->size());
      data = HostData::create(data->shape(), std::move(copy), nullptr);
    }
    step.parameters.push_back(data->buffer());
    step.producers.push_back(data->producer());
    inputs.push_back(std::move(data));
  }
}

/// Creates the data of a result. Steps run in order, so memory that only this
/// step's tensors hold may be reused.
HostDataPtr CapturedStep::outputData(size_t number, const ScheduledStep &step) {
  Output &output = outputs[number];
  const OutputPlan &plan = sizes.front().program->outputs[number];
  const torch::lazy::Shape &shape = sizes.front().results[number];
  if (plan.place == OutputPlace::Forwarded)
    return inputs[plan.parameter];
  bool isUpdate = plan.updatedParameter && !output.isReturned &&
                  canKeepOldValue(inputs[*plan.updatedParameter]->producer());
  const CompletionPtr &completion =
      isUpdate ? step.updatesCompletion : step.completion;
  if (plan.place == OutputPlace::Donated)
    return HostData::create(shape, step.parameters[plan.parameter], completion);
  HostDataPtr old;
  if (!output.isReturned && !output.isState && output.arguments.empty())
    old = output.states.empty() ? output.scratch : output.states[0]->data();
  long holders = 1 + std::max<long>(1, long(output.states.size()));
  BufferPtr buffer;
  if (old && old.use_count() == holders && !old->sharesBuffer() &&
      old->buffer()->size() == byteSize(shape))
    buffer = old->buffer();
  else
    buffer = Buffer::deferred(byteSize(shape));
  HostDataPtr data = HostData::create(shape, std::move(buffer), completion);
  if (output.states.empty() && !output.isReturned && output.arguments.empty())
    output.scratch = data;
  return data;
}

at::Tensor
CapturedStep::returnedTensor(const Returned &returned,
                             const std::vector<at::Tensor> &tensors,
                             const std::vector<HostDataPtr> &datas,
                             const std::vector<at::Tensor> &earlier) const {
  switch (returned.from) {
  case Returned::Argument:
    return tensors[returned.index];
  case Returned::Known:
    return slots[returned.index].tensor;
  case Returned::Again:
    return earlier[returned.index];
  case Returned::Result:
    break;
  }
  at::Tensor tensor = makeTensor(datas[returned.index]);
  Strides strides = tensor.sizes() == outputs[returned.index].shape.sizes()
                        ? returned.geometry.strides
                        : Strides(at::infer_dense_strides(
                              tensor.sizes(), returned.geometry.strides));
  if (tensor.strides() != strides || returned.geometry.offset != 0)
    setGeometry(tensor, strides, returned.geometry.offset);
  tensor = wrapIfOutside(std::move(tensor));
  if (returned.requiresGrad) {
    auto node = c10::make_intrusive<NoGraph>();
    uint32_t place = node->add_input_metadata(tensor);
    torch::autograd::impl::set_gradient_edge(tensor, {std::move(node), place});
  }
  return tensor;
}

void CapturedStep::addOutputs(const std::vector<at::Tensor> &tensors,
                              ScheduledStep &step,
                              std::vector<at::Tensor> &results) {
  std::vector<HostDataPtr> datas;
  for (size_t i = 0; i < outputs.size(); ++i) {
    datas.push_back(outputData(i, step));
    step.outputs.push_back(datas.back()->buffer());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const TensorDataPtr &state : outputs[i].states)
      state->setData(datas[i]);
    for (size_t slot : outputs[i].slots) {
      slots[slot].expected = datas[i];
      slots[slot].tensor.unsafeGetTensorImpl()->bump_version();
      // Tensors that share the base are updated from it.
      if (auto *shared = slots[slot].isShared
                             ? sharedStorageOf(slots[slot].tensor)
                             : nullptr)
        shared->add_update(shared->base(), {});
    }
    for (size_t argument : outputs[i].arguments) {
      if (TensorDataPtr base = baseOf(tensors[argument]))
        base->setData(datas[i]);
      tensorDataOf(tensors[argument])->setData(datas[i]);
      tensors[argument].unsafeGetTensorImpl()->bump_version();
    }
  }
  for (const Returned &returned : returns)
    results.push_back(returnedTensor(returned, tensors, datas, results));
  inputs.clear();
}

std::string CapturedStep::replay(const std::vector<at::Tensor> &tensors,
                                 const std::vector<double> &values,
                                 std::vector<at::Tensor> &results) {
  if (selectedBackendGeneration() != backend)
    return "another backend is selected";
  std::string state = TraceEnvironment::current().differenceFrom(environment);
  if (!state.empty())
    return state + " changed";
  checkMayWait();
  waitForRoomInQueue();
  std::lock_guard<TraceLock> lock(traceLock);
  if (!collectives.empty())
    scheduledOrder(); // may wait, which releases the lock
  std::string failure = checkArguments(tensors);
  if (failure.empty() && !selectSizes(tensors))
    failure = "the sizes of the arguments changed";
  if (failure.empty())
    failure = checkSlots();
  if (failure.empty())
    failure = checkCounts();
  if (!failure.empty())
    return failure;
  Stopwatch stopwatch;
  ScheduledStep step;
  step.parameters.reserve(parameters.size());
  step.outputs.reserve(outputs.size());
  addParameters(tensors, step);
  addOutputs(tensors, step, results);
  noteReplayedCollectives(collectives);
  step.scalars = numbers;
  for (auto [scalar, expression] : boundScalars)
    if (step.scalars[scalar].isFloat)
      step.scalars[scalar].asFloat = values[expression];
    else
      step.scalars[scalar].asInt = int64_t(values[expression]);
  for (size_t i = 0; i < stepCounts.size(); ++i)
    expectedCounts[i] = *stepCounts[i].mutable_data_ptr<float>() += 1;
  step.program = sizes.front().program;
  step.number = StepExecutor::get().noteReplayedStep();
  count(Counter::replayed_steps);
  logAndSchedule(std::move(step), "captured", "capture", stopwatch.seconds());
  return "";
}
