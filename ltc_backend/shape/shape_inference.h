//===- shape_inference.h - Result shapes and dtypes of ATen ops -*- C++ -*-===//
//
// Infers the shapes and dtypes of an op's results without tensor data: from the
// sizes and dtypes of tensor arguments and the values of all other arguments. A
// call of a Meta kernel takes 1 to 900 microseconds (after `import torch` the
// Meta key has Python kernels), which is too slow for each traced op. So the
// tracer tries, in this order:
//
//   1. inferClosedForm        tens of nanoseconds, no dispatcher, no GIL
//   2. ShapeCache::find       by the call's hash
//   3. inferWithMetaKernel    once; its results are inserted into the cache
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_SHAPE_SHAPE_INFERENCE_H
#define TORCH_LTC_SHAPE_SHAPE_INFERENCE_H

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>
#include <string_view>
#include <torch/csrc/lazy/core/cache.h>
#include <torch/csrc/lazy/core/hash.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace torch_ltc {

/// Whether a Python number passed as the argument of this name takes part in
/// type promotion. alpha, beta, value, weight and slopes don't.
inline bool isPromotedNumber(std::string_view argument) {
  return argument == "other" || argument == "self" || argument == "exponent" ||
         argument == "min" || argument == "max";
}

// Enumerators come from the op table: ir/op_record.h.
enum class ShapeRule : uint8_t;
enum class DTypeRule : uint8_t;

struct ResultShape {
  at::ScalarType dtype = at::ScalarType::Undefined;
  /// The number of elements along each dimension.
  c10::SmallVector<int64_t, 6> sizes;

  bool operator==(const ResultShape &other) const {
    return dtype == other.dtype && sizes == other.sizes;
  }
};

/// One entry for each result tensor, in schema order. A `Tensor[]` result has
/// one entry for each of its tensors. A result that the op leaves undefined
/// (masked-out gradients) has dtype Undefined and no sizes.
using ResultShapes = c10::SmallVectorImpl<ResultShape>;

/// Replaces `results` by the shapes and dtypes that the op with `schema` (from
/// the dispatcher) returns for `arguments`, one IValue for each argument in
/// schema order. Tensors among them may be on any device; only their sizes,
/// dtype and wrapped-number flag are read.
///
/// Returns false, with `results` empty, if there is no closed form for these
/// arguments (always for the rule `meta`); then the Meta kernel must be used.
/// Throws c10::Error with the op's name if eager PyTorch would reject the
/// shapes or dtypes of the arguments, or if the op's lowering doesn't support
/// them.
bool inferClosedForm(ShapeRule shapeRule, DTypeRule dtypeRule,
                     const c10::FunctionSchema &schema,
                     c10::ArrayRef<c10::IValue> arguments,
                     ResultShapes &results);

/// Replaces `results` by the shapes and dtypes that the op's Meta kernel
/// returns. Calls the op with meta tensors of the arguments' sizes and dtypes
/// (wrapped numbers stay CPU tensors). Slow; takes the GIL if the Meta kernel
/// is written in Python.
///
/// Throws c10::NotImplementedError if the op has no Meta kernel. For invalid
/// arguments, throws c10::Error with the kernel's message and the op's name,
/// even if the kernel is written in Python.
void inferWithMetaKernel(const c10::OperatorHandle &op,
                         c10::ArrayRef<c10::IValue> arguments,
                         ResultShapes &results);

/// While an instance exists, calls in this thread skip autograd,
/// functionalization and Python modes (fake tensors, make_fx).
class IgnoredUserModes {
  c10::impl::ExcludeDispatchKeyGuard guard{
      c10::autograd_dispatch_keyset |
      c10::DispatchKeySet({c10::DispatchKey::Python,
                           c10::DispatchKey::PythonTLSSnapshot,
                           c10::DispatchKey::Functionalize,
                           c10::DispatchKey::ADInplaceOrView})};
};

/// Bounded map from a call's hash to the Meta kernel's results; evicts the
/// least recently used entry. Thread-safe.
class ShapeCache {
public:
  explicit ShapeCache(size_t capacity = 4096) : entries(capacity) {}

  /// Replaces `results` and returns true if `key` is in the cache. `key` must
  /// be a hash of everything that the results depend on: op, sizes, dtypes and
  /// wrapped-number flags of tensors, and all other arguments.
  bool find(const torch::lazy::hash_t &key, ResultShapes &results);
  void insert(const torch::lazy::hash_t &key,
              c10::ArrayRef<ResultShape> results);
  void clear() { entries.Clear(); }
  size_t size() const { return size_t(entries.Numel()); }

private:
  struct Hasher {
    size_t operator()(const torch::lazy::hash_t &key) const {
      return torch::lazy::HashReduce(key);
    }
  };

  torch::lazy::Cache<torch::lazy::hash_t, std::vector<ResultShape>, Hasher>
      entries;
};

} // namespace torch_ltc

#endif // TORCH_LTC_SHAPE_SHAPE_INFERENCE_H
