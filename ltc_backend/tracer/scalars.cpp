//===- scalars.cpp - Reading one number -----------------------------------===//

#include "executor/live_tensors.h"
#include "executor/step_executor.h"
#include "tracer/registration.h"

#include <ATen/Functions.h>

using namespace torch_ltc;

namespace {

at::Scalar localScalarDense(const at::Tensor &self) {
  StepExecutor::get().materialise(self, "aten::_local_scalar_dense");
  return tensorDataOf(self)->data()->sharedTensor().item();
}

} // namespace

void torch_ltc::registerScalarKernels(torch::Library &library) {
  library.impl("_local_scalar_dense", TORCH_FN(localScalarDense));
}
