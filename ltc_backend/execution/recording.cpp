//===- recording.cpp - Inputs, draws and results of one traced step -------===//

#include "execution/recording.h"

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>

#include <algorithm>
#include <unordered_map>

using namespace torch_ltc;

namespace {

thread_local Recording *currentRecording = nullptr;

bool isSameValue(const Recording::Argument &a, const Recording::Argument &b) {
  return a.isLazy == b.isLazy &&
         (a.isLazy ? isSame(a.data, b.data) : a.impl == b.impl);
}

} // namespace

at::Tensor torch_ltc::innerOf(const at::Tensor &tensor) {
  if (!at::functionalization::impl::isFunctionalTensor(tensor))
    return tensor;
  at::functionalization::impl::sync(tensor);
  return at::functionalization::impl::from_functional_tensor(tensor);
}

TensorDataPtr torch_ltc::baseOf(const at::Tensor &tensor) {
  if (!at::functionalization::impl::isFunctionalTensor(tensor))
    return nullptr;
  auto *storage = static_cast<at::functionalization::FunctionalStorageImpl *>(
      tensor.storage().unsafeGetStorageImpl());
  return tensorDataOf(storage->base());
}

at::functionalization::FunctionalStorageImpl *
torch_ltc::sharedStorageOf(const at::Tensor &tensor) {
  if (!at::functionalization::impl::isFunctionalTensor(tensor) ||
      tensor.storage().use_count() <= 1)
    return nullptr;
  auto *storage = static_cast<at::functionalization::FunctionalStorageImpl *>(
      tensor.storage().unsafeGetStorageImpl());
  storage->apply_updates();
  return storage;
}

Recording *Recording::current() { return currentRecording; }

Recording::Recording(std::vector<at::Tensor> tensors, bool numbersVary)
    : numbersVary(numbersVary), cpuReads(tensors) {
  TORCH_CHECK(!currentRecording,
              "A captured step can't call another captured step.");
  for (const at::Tensor &tensor : tensors) {
    Argument argument;
    argument.dtype = tensor.scalar_type();
    argument.sizes = tensor.sizes().vec();
    argument.strides = Strides(tensor.strides());
    argument.isLazy = tensor.device().is_lazy();
    if (argument.isLazy)
      argument.data = tensorDataOf(tensor)->data();
    else
      argument.impl = tensor.unsafeGetTensorImpl();
    arguments.push_back(std::move(argument));
  }
  for (Argument &argument : arguments)
    while (!isSameValue(arguments[argument.sameAs], argument))
      ++argument.sameAs;
  held = std::move(tensors);
  currentRecording = this;
}

Recording::~Recording() { close(); }

void Recording::close() {
  if (currentRecording == this)
    currentRecording = nullptr;
  cpuReads.close();
  held.clear();
}

void Recording::noteRead(const std::string &opName) {
  if (read.empty())
    read = opName + messageSuffix(captureLocation());
}

void Recording::noteDraw(const HostDataPtr &data, Draw draw,
                         std::string distribution) {
  draws.emplace_back(data, std::move(draw));
  distributions.push_back(std::move(distribution));
}

void Recording::noteUpload(const HostDataPtr &data, const at::Tensor &source) {
  at::Tensor content;
  if (source.nbytes() <= kMaxConstantBytes)
    content = source.detach().clone(at::MemoryFormat::Contiguous);
  uploads.push_back({data, source.unsafeGetTensorImpl(), std::move(content)});
}

void Recording::noteOrder(const HostDataPtr &data) {
  if (isSame(order, {}))
    order = data;
}

void Recording::noteReceiver(const at::Tensor &tensor) {
  weakReceivers.emplace_back(tensor.getIntrusivePtr());
}

std::vector<at::Tensor> Recording::receivers() const {
  std::vector<at::Tensor> alive;
  for (const auto &weak : weakReceivers)
    if (auto impl = weak.lock())
      alive.emplace_back(std::move(impl));
  return alive;
}

size_t Recording::noteSizesRead(const at::Tensor &tensor) {
  TensorAccess access;
  SizeSource source;
  SizedValue value;
  auto argument = std::ranges::find_if(
      held, [&](const at::Tensor &other) { return other.is_same(tensor); });
  if (argument != held.end()) {
    source.argument = size_t(argument - held.begin());
  } else {
    // The value before pending updates has the same sizes. Applying the updates
    // here would change the trace.
    TensorDataPtr state = tensorDataOf(
        at::functionalization::impl::isFunctionalTensor(tensor)
            ? at::functionalization::impl::from_functional_tensor(tensor)
            : tensor);
    if (HostDataPtr data = state->data()) {
      value.data = data;
    } else {
      torch::lazy::Value pending = state->value();
      value.node = pending.node;
      value.result = uint32_t(pending.index);
    }
  }
  sizeSources.push_back(source);
  sizedValues.push_back(std::move(value));
  return sizeSources.size() - 1;
}

void Recording::findSizeSources(const Graph &observed) {
  std::unordered_map<const void *, uint32_t> positions;
  for (uint32_t i = 0; i < observed.nodes.size(); ++i) {
    const GraphNode *node = observed.nodes[i];
    positions.emplace(static_cast<const torch::lazy::Node *>(node), i);
    if (node->isData())
      positions.emplace(static_cast<const DataNode *>(node)->data().get(), i);
  }
  for (size_t i = 0; i < sizeSources.size(); ++i) {
    const SizedValue &value = sizedValues[i];
    const void *key = value.data.lock().get();
    if (!key)
      key = value.node.lock().get();
    auto found = positions.find(key);
    if (key && !sizeSources[i].argument && found != positions.end())
      sizeSources[i].value = ResultRef{found->second, value.result};
  }
}

void Recording::noteRun(const ObservedStep &observed) {
  ++numRuns;
  const Graph &ran = observed.graph;
  program = observed.chosen.program;
  graph = std::make_shared<const GraphSnapshot>(
      takeSnapshot(ran, program->name, observed.chosen.donatable));
  data.parameters.assign(ran.parameters.begin(), ran.parameters.end());
  data.results.assign(observed.results.begin(), observed.results.end());
  parameterShapes.clear();
  data.uploads.clear();
  for (const HostDataPtr &parameter : ran.parameters) {
    parameterShapes.push_back(parameter->shape());
    auto upload = std::ranges::find_if(uploads, [&](const Upload &other) {
      return isSame(other.data, parameter);
    });
    data.uploads.push_back(upload == uploads.end() ? at::Tensor()
                                                   : upload->content);
  }
  resultShapes.clear();
  for (const HostDataPtr &data : observed.results)
    resultShapes.push_back(data->shape());
  roots.assign(observed.tensors.begin(), observed.tensors.end());
  resultOfRoot = ran.resultOfRoot;
  scalars = ran.scalars;
  findSizeSources(ran);
}
