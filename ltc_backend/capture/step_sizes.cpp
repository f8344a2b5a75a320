//===- step_sizes.cpp - The sizes of a captured step's arguments ----------===//

#include "capture/captured_step.h"

#include <ATen/ExpandUtils.h>

#include <algorithm>

using namespace torch_ltc;

namespace {

std::vector<int64_t> sizesOf(const std::vector<at::Tensor> &tensors) {
  std::vector<int64_t> sizes;
  for (const at::Tensor &tensor : tensors)
    sizes.insert(sizes.end(), tensor.sizes().begin(), tensor.sizes().end());
  return sizes;
}

/// Whether the tensors have these sizes, without allocating memory.
bool areSizesOf(c10::ArrayRef<int64_t> sizes,
                const std::vector<at::Tensor> &tensors) {
  for (const at::Tensor &tensor : tensors) {
    const at::IntArrayRef own = tensor.sizes();
    if (sizes.size() < own.size() || sizes.slice(0, own.size()) != own)
      return false;
    sizes = sizes.slice(own.size());
  }
  return sizes.empty();
}

} // namespace

void CapturedStep::addSizesOf(std::vector<int64_t> argumentSizes,
                              ProgramPtr program, GraphSnapshotPtr graph,
                              std::vector<torch::lazy::Shape> results) {
  Sizes added;
  added.arguments = std::move(argumentSizes);
  added.isDonated.assign(graph->parameters.size(), false);
  for (const OutputPlan &plan : program->outputs)
    if (plan.place == OutputPlace::Donated)
      added.isDonated[plan.parameter] = true;
  added.results = std::move(results);
  added.program = std::move(program);
  if (general)
    added.graph = std::move(graph);
  sizes.push_front(std::move(added));
  if (sizes.size() > kMaxSizes)
    sizes.pop_back();
}

bool CapturedStep::selectSizes(const std::vector<at::Tensor> &tensors) {
  auto found = std::ranges::find_if(sizes, [&](const Sizes &known) {
    return areSizesOf(known.arguments, tensors);
  });
  if (found == sizes.end())
    return false;
  sizes.splice(sizes.begin(), sizes, found);
  return true;
}

/// Returns why an instance of the program for all sizes doesn't fit the
/// arguments, the state, or the results that tensors receive; "" if it does.
std::string
CapturedStep::checkSizes(const GraphSnapshot &graph,
                         const std::vector<at::Tensor> &tensors) const {
  std::vector<bool> isRead(draws.size(), false);
  for (size_t k = 0; k < parameters.size(); ++k) {
    const Parameter &parameter = parameters[k];
    const at::IntArrayRef found = graph.parameters[k].shape.sizes();
    if (parameter.origin == Origin::Draw)
      isRead[parameter.index] = true;
    else if (found != (parameter.origin == Origin::Argument
                           ? tensors[parameter.index].sizes()
                           : parameter.shape.sizes()))
      return "the program for all sizes reads a tensor of another size";
  }
  if (!std::ranges::all_of(isRead, std::identity()))
    return "it draws random numbers that the program doesn't read";
  for (size_t i = 0; i < outputs.size(); ++i) {
    const at::IntArrayRef found = graph.shape(graph.results[i]).sizes();
    const bool isFixed = outputs[i].isState || !outputs[i].states.empty();
    if (isFixed && found != outputs[i].shape.sizes())
      return "a tensor that the step writes would change its size";
    for (size_t argument : outputs[i].arguments)
      if (found != tensors[argument].sizes())
        return "an argument that the step writes would change its size";
  }
  for (const Returned &tensor : returns) {
    if (tensor.from != Returned::Result)
      continue;
    const Strides &strides = tensor.geometry.strides;
    if (Strides(at::infer_dense_strides(outputs[tensor.index].shape.sizes(),
                                        strides)) != strides ||
        tensor.geometry.offset != 0)
      return "it returns a tensor whose elements aren't packed";
  }
  return "";
}

std::string
CapturedStep::addSizes(const std::vector<at::Tensor> &tensors,
                       c10::ArrayRef<std::optional<int64_t>> symbols) {
  if (!general)
    return "it has no program for all sizes";
  auto sizeOf = [&](size_t k, size_t dim) -> std::optional<int64_t> {
    const Parameter &parameter = parameters[k];
    switch (parameter.origin) {
    case Origin::Argument:
      return tensors[parameter.index].size(int64_t(dim));
    case Origin::Draw:
      return std::nullopt;
    case Origin::Result:
    case Origin::Constant:
    case Origin::Upload:
      break;
    }
    return parameter.shape.sizes()[dim];
  };
  std::string problem;
  GeneralStep::Instance instance = general->at(sizeOf, symbols, problem);
  if (!instance.program)
    return problem;
  problem = checkSizes(*instance.graph, tensors);
  if (!problem.empty())
    return problem;
  std::vector<torch::lazy::Shape> results;
  for (const ResultRef &result : instance.graph->results)
    results.push_back(instance.graph->shape(result));
  addSizesOf(sizesOf(tensors), instance.program, instance.graph,
             std::move(results));
  sizes.front().draws.resize(draws.size());
  for (size_t k = 0; k < parameters.size(); ++k)
    if (parameters[k].origin == Origin::Draw)
      sizes.front().draws[parameters[k].index] =
          instance.graph->parameters[k].shape.sizes().vec();
  return "";
}

std::vector<int64_t> CapturedStep::quantities() const {
  return general ? general->quantitiesIn(*sizes.front().graph)
                 : std::vector<int64_t>();
}

std::vector<int64_t> CapturedStep::integers() const {
  return general ? generalNumbersOf(sizes.front().graph).integers
                 : std::vector<int64_t>();
}

StepData CapturedStep::lastData() const {
  StepData last;
  for (const Parameter &parameter : parameters) {
    last.parameters.push_back(parameter.origin == Origin::Constant
                                  ? slots[parameter.index].data->data()
                                  : nullptr);
    last.uploads.push_back(parameter.origin == Origin::Upload
                               ? uploads[parameter.index]->sharedTensor()
                               : at::Tensor());
  }
  for (const Output &output : outputs)
    last.results.push_back(output.states.empty() ? nullptr
                                                 : output.states[0]->data());
  return last;
}
