//===- recording.cpp - Inputs, draws and results of one traced step -------===//

#include "execution/recording.h"

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>

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

Recording::Recording(std::vector<at::Tensor> tensors) : cpuReads(tensors) {
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
  uploads.push_back({data, source.unsafeGetTensorImpl()});
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

void Recording::noteRun(const ProgramPtr &programRun,
                        c10::ArrayRef<HostDataPtr> programParameters,
                        c10::ArrayRef<HostDataPtr> programResults,
                        c10::ArrayRef<TensorDataPtr> rootTensors,
                        c10::ArrayRef<uint32_t> resultOfRootTensor,
                        c10::ArrayRef<DynamicScalar> programScalars) {
  ++numRuns;
  program = programRun;
  parameters.assign(programParameters.begin(), programParameters.end());
  results.assign(programResults.begin(), programResults.end());
  parameterShapes.clear();
  for (const HostDataPtr &data : programParameters)
    parameterShapes.push_back(data->shape());
  resultShapes.clear();
  for (const HostDataPtr &data : programResults)
    resultShapes.push_back(data->shape());
  roots.assign(rootTensors.begin(), rootTensors.end());
  resultOfRoot = resultOfRootTensor.vec();
  scalars = programScalars.vec();
}
