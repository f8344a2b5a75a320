//===- scalars.cpp - Reading one number or bool, checks without values ----===//

#include "execution/assumed_truths.h"
#include "graph/live_tensors.h"
#include "ops/registration.h"

#include <ATen/Functions.h>
#include <ATen/ops/_assert_tensor_metadata_native.h>

using namespace torch_ltc;

namespace {

at::Scalar localScalarDense(const at::Tensor &self) {
  if (assumeTrue(self)) {
    HostData::noteRead();
    return true;
  }
  computeForCaller(self, "aten::_local_scalar_dense");
  return tensorDataOf(self)->data()->sharedTensor().item();
}

at::Tensor isAllTrue(const at::Tensor &self) {
  at::Tensor result = at::all(self);
  noteAllTrue(result);
  return result;
}
at::Tensor isAnyTrue(const at::Tensor &self) { return at::any(self); }

/// Compares the values of the tensors after a sync, because the result is a
/// Python bool.
bool equal(const at::Tensor &self, const at::Tensor &other) {
  TORCH_CHECK(self.device() == other.device(),
              "Cannot compare two tensors on different devices. Got: ",
              self.device(), " and ", other.device());
  if (self.sizes() != other.sizes())
    return false;
  computeForCaller({self, other}, "aten::equal");
  return at::equal(tensorDataOf(self)->data()->sharedTensor(),
                   tensorDataOf(other)->data()->sharedTensor());
}

} // namespace

void torch_ltc::registerScalarKernels(torch::Library &library) {
  library.impl("_local_scalar_dense", TORCH_FN(localScalarDense));
  library.impl("_is_all_true", TORCH_FN(isAllTrue));
  library.impl("_is_any_true", TORCH_FN(isAnyTrue));
  library.impl("equal", TORCH_FN(equal));
  // Programs of torch.export contain this check of dtype and device.
  library.impl("_assert_tensor_metadata",
               TORCH_FN(at::native::_assert_tensor_metadata_meta_symint));
}
