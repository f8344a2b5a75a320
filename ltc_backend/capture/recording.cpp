//===- recording.cpp - What one traced step read, drew and computed -------===//

#include "capture/recording.h"

using namespace torch_ltc;

namespace {
thread_local Recording *open = nullptr;
} // namespace

Recording *Recording::current() { return open; }

Recording::Recording(std::vector<at::Tensor> tensors) {
  TORCH_CHECK(!open, "A captured step can't call another captured step.");
  for (const at::Tensor &tensor : tensors) {
    Argument argument;
    argument.dtype = tensor.scalar_type();
    argument.sizes = tensor.sizes().vec();
    argument.isLazy = tensor.device().is_lazy();
    if (argument.isLazy)
      argument.data = tensorDataOf(tensor)->data();
    else
      argument.impl = tensor.unsafeGetTensorImpl();
    arguments.push_back(std::move(argument));
  }
  held = std::move(tensors);
  open = this;
}

Recording::~Recording() { close(); }

void Recording::close() {
  if (open == this)
    open = nullptr;
  held.clear();
}

void Recording::noteDraw(const HostDataPtr &data, Draw draw) {
  draws.emplace_back(data, std::move(draw));
}

void Recording::noteUpload(const HostDataPtr &data, const at::Tensor &source) {
  uploads.push_back({data, source.unsafeGetTensorImpl()});
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
