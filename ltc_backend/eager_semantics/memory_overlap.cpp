//===- memory_overlap.cpp - Operands that share memory --------------------===//

#include "eager_semantics/memory_overlap.h"

#include "events/op_error.h"
#include "graph/live_tensors.h"
#include "tracing/writing_call.h"

#include <algorithm>

using namespace torch_ltc;

namespace {

/// Whether the tensor fills a range of memory without gaps. Computed here
/// because a functional wrapper's flag for this isn't updated after the
/// wrapper's creation.
bool fillsItsExtent(const at::Tensor &tensor) {
  if (tensor.is_contiguous())
    return true;
  at::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  c10::SmallVector<std::pair<int64_t, int64_t>, 6> dims;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1)
      dims.emplace_back(strides[i], sizes[i]);
  std::sort(dims.begin(), dims.end());
  int64_t next = 1;
  for (auto [stride, size] : dims) {
    if (stride != next)
      return false;
    next *= size;
  }
  return true;
}

/// Whether the sizes are symbols: torch.compile traces with such a tensor.
bool isSymbolic(const at::Tensor &tensor) {
  return tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

bool overlap(const at::Tensor &written, const at::Tensor &read,
             Overlap rejected) {
  if (written.is_same(read))
    return rejected == Overlap::Whole;
  if (isSymbolic(written) || isSymbolic(read))
    return false;
  if (!written.numel() || !read.numel() || !written.has_storage() ||
      !fillsItsExtent(written) || !fillsItsExtent(read))
    return false;
  int64_t writtenBegin = written.sym_storage_offset().expect_int();
  int64_t begin = read.sym_storage_offset().expect_int();
  if (writtenBegin == begin && written.numel() == read.numel())
    return rejected == Overlap::Whole || written.strides() != read.strides();
  return writtenBegin < begin + read.numel() &&
         begin < writtenBegin + written.numel();
}

bool isOnLazy(const at::Tensor &tensor) { return tensor.device().is_lazy(); }

} // namespace

bool torch_ltc::mayOverlap(at::IntArrayRef sizes, at::IntArrayRef strides) {
  c10::SmallVector<std::pair<int64_t, int64_t>, 6> dims; // stride, size
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1)
      dims.emplace_back(strides[i], sizes[i]);
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach)
      return true;
    reach += stride * (size - 1);
  }
  return false;
}

void torch_ltc::checkWrittenDevice(const at::Tensor &written,
                                   c10::ArrayRef<c10::IValue> arguments,
                                   const std::string &opName) {
  if (!written.defined() || !written.device().is_cpu() ||
      written.key_set().has(c10::DispatchKey::Functionalize))
    return;
  TORCH_CHECK(!anyTensor(arguments, isOnLazy), opName,
              " can't write a tensor on 'cpu' from one on 'lazy': use copy_() "
              "or move one of them with .to() first.",
              opSuffix(opName));
}

void torch_ltc::checkReadDevices(const at::Tensor &written,
                                 c10::ArrayRef<c10::IValue> arguments,
                                 const std::string &opName) {
  // A tensor without dims counts as a number.
  auto isOnCpu = [](const at::Tensor &tensor) {
    return tensor.device().is_cpu() && tensor.dim() > 0;
  };
  TORCH_CHECK(anyTensor(arguments, isOnLazy) || !anyTensor(arguments, isOnCpu),
              "Expected all tensors to be on the same device, but the operands "
              "of ",
              opName, " are on cpu and its result is on ", written.device(),
              opSuffix(opName));
}

bool torch_ltc::isWrittenTwice(const at::Tensor &written) {
  return !isSymbolic(written) && written.numel() != 0 &&
         hasRepeatedElements(written);
}

void torch_ltc::checkWrittenOnce(const at::Tensor &written,
                                 const std::string &opName) {
  TORCH_CHECK(!isWrittenTwice(written),
              "unsupported operation: more than one element of the "
              "written-to tensor refers to a single memory location. "
              "Please clone() the tensor before performing the operation.",
              opSuffix(opName));
}

void torch_ltc::checkSharedStorage(const at::Tensor &written,
                                   const at::Tensor &read, Overlap rejected,
                                   const std::string &opName) {
  TORCH_CHECK(!overlap(written, read, rejected),
              "unsupported operation: some elements of the input tensor and "
              "the written-to tensor refer to a single memory location. Please "
              "clone() the tensor before performing the operation.",
              opSuffix(opName));
}
