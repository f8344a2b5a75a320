//===- view_inverses.cpp - Writes through views with repeated elements ----===//
//
// Functionalization turns a write to a view into a new value of its base. For
// three view ops, torch 2.13 computes that value incorrectly:
//
// - `expand`: adds the sum of the copies' changes to the base. The sum counts
//   an equal change of all copies several times, rounds, turns infinities into
//   NaN and is rejected for bool.
// - `unfold`: fills the gaps between windows with zeros.
// - `as_strided` whose rows share memory: the last row wins, even if another
//   was written.
//
// So the kernels here replace the inverse in the record that functionalization
// has just created for such a view.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/memory_overlap.h"
#include "eager_semantics/registration.h"
#include "graph/live_tensors.h"
#include "tracing/boxed_kernels.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

using namespace torch_ltc;
using at::Tensor;
using at::functionalization::ViewMeta;
using c10::DispatchKey;

namespace {

using ViewMetaPtr = std::shared_ptr<ViewMeta>;

/// The signed integer dtype whose elements have `bytes` bytes.
at::ScalarType integersOfSize(size_t bytes) {
  switch (bytes) {
  case 1:
    return at::kChar;
  case 2:
    return at::kShort;
  case 4:
    return at::kInt;
  default:
    return at::kLong;
  }
}

/// The view that torch recorded, with a different inverse.
struct ViewMetaWithFixedInverse : ViewMeta {
  explicit ViewMetaWithFixedInverse(ViewMetaPtr recorded)
      : ViewMeta(recorded->has_symbolic_inputs, recorded->is_multi_output,
                 recorded->is_as_strided, recorded->out_index),
        recorded(std::move(recorded)) {}

  Tensor forward(const Tensor &base) override {
    return recorded->forward(base);
  }

  /// Computes the new value of the base, with the strides of the old one.
  Tensor reverse(const Tensor &base, const Tensor &mutated) final {
    at::ScalarType type = base.scalar_type(), carrier = carrierOf(type);
    Tensor result =
        carrier == type
            ? inverse(base, mutated)
            : at::view_copy(inverse(at::view_copy(base, carrier),
                                    at::view_copy(mutated, carrier)),
                            type);
    keepGeometry(result, base);
    return result;
  }

  ViewMetaPtr recorded;

private:
  virtual Tensor inverse(const Tensor &base, const Tensor &mutated) = 0;

  /// The dtype in which the inverse is computed: an integer dtype of the same
  /// width if eager's kernels can't compare elements of `type`.
  static at::ScalarType carrierOf(at::ScalarType type) {
    return c10::isFloat8Type(type) || c10::isBarebonesUnsignedType(type)
               ? integersOfSize(c10::elementSize(type))
               : type;
  }
};

/// The bits of `tensor` as integers; those of complex values have one more
/// dimension, of size 2.
Tensor bitsOf(const Tensor &tensor) {
  if (tensor.is_complex())
    return bitsOf(at::view_as_real_copy(tensor));
  if (!at::isFloatingType(tensor.scalar_type()))
    return tensor;
  return at::view_copy(tensor, integersOfSize(tensor.element_size()));
}

/// Returns a mask of the elements of a view that were written: those whose bits
/// in `mutated` differ from those in `before`, the old values. Values aren't
/// compared, because NaN differs from itself and -0.0 equals 0.0.
Tensor writtenPlaces(const Tensor &mutated, const Tensor &before) {
  auto rowMajor = [](const Tensor &tensor) {
    return at::clone(tensor, at::MemoryFormat::Contiguous);
  };
  Tensor written = at::ne(bitsOf(rowMajor(mutated)), bitsOf(rowMajor(before)));
  return before.is_complex() ? at::any(written, -1) : written;
}

/// Returns the row-major position of each element of `like`, as an int64 tensor
/// of the same sizes.
Tensor positionsIn(const Tensor &like) {
  return at::arange(like.numel(), like.options().dtype(at::kLong))
      .view(like.sizes());
}

/// Returns the elements of `mutated` at the row-major positions `last`; where
/// `last` is -1, the element of `base`.
Tensor withElements(const Tensor &base, const Tensor &mutated,
                    const Tensor &last) {
  Tensor values = at::take(mutated, at::clamp_min(last, 0));
  return at::where(at::ge(last, 0), values, base);
}

/// The inverse of `expand`. Eager rejects writes of different values to one
/// element. So any of the copies that differ from the old element may be
/// chosen.
struct ExpandView final : ViewMetaWithFixedInverse {
  using ViewMetaWithFixedInverse::ViewMetaWithFixedInverse;

private:
  Tensor inverse(const Tensor &base, const Tensor &mutated) override {
    if (mutated.numel() == base.numel())
      return at::view_copy(mutated, base.sizes());
    if (mutated.numel() == 0)
      return base;
    std::vector<int64_t> copies;
    int64_t leading = mutated.dim() - base.dim();
    for (int64_t dim = 0; dim < mutated.dim(); ++dim)
      if (dim < leading || base.size(dim - leading) != mutated.size(dim))
        copies.push_back(dim);
    Tensor written =
        writtenPlaces(mutated, at::expand_copy(base, mutated.sizes()));
    Tensor last = at::amax(at::where(written, positionsIn(mutated), -1), copies,
                           /*keepdim=*/true);
    return withElements(base, mutated, at::view_copy(last, base.sizes()));
  }
};

/// The inverse of `unfold`, for windows that overlap, are adjacent, or have
/// gaps between them.
struct UnfoldView final : ViewMetaWithFixedInverse {
  UnfoldView(ViewMetaPtr recorded, int64_t dim, int64_t size, int64_t step)
      : ViewMetaWithFixedInverse(std::move(recorded)), dim(dim), size(size),
        step(step) {}

private:
  Tensor inverse(const Tensor &base, const Tensor &mutated) override {
    if (base.dim() == 0)
      return recorded->reverse(base, mutated);
    if (step < size)
      return reverseOverlapping(base, mutated);
    auto spread = [&](const Tensor &windows) {
      return at::unfold_backward(windows, base.sizes(), dim, size, step);
    };
    Tensor ones =
        at::ones(mutated.sizes(), mutated.options().dtype(at::kFloat));
    return at::where(at::gt(spread(ones), 0), spread(mutated), base);
  }

  int64_t dim, size, step;

  /// Writes the windows' first elements, then their second elements, and so on:
  /// each group is a slice of the base without repeated elements. Skips
  /// elements that weren't written, because they may have been written through
  /// another window.
  Tensor reverseOverlapping(const Tensor &base, const Tensor &mutated) const {
    Tensor written =
        writtenPlaces(mutated, at::unfold_copy(base, dim, size, step));
    int64_t along = c10::maybe_wrap_dim(dim, base.dim());
    int64_t reach = (mutated.size(along) - 1) * step + 1;
    Tensor result = base;
    for (int64_t i = 0; i < size; ++i) {
      Tensor slice = at::slice_copy(result, along, i, i + reach, step);
      slice = at::where(at::select_copy(written, -1, i),
                        at::select_copy(mutated, -1, i), slice);
      result = at::slice_scatter(result, slice, along, i, i + reach, step);
    }
    return result;
  }
};

/// The inverse of an `as_strided` in which some elements share a position in
/// memory.
struct OverlappingView final : ViewMetaWithFixedInverse {
  using ViewMetaWithFixedInverse::ViewMetaWithFixedInverse;

private:
  /// Each element of the base gets the value at the last written position of
  /// the view that refers to this element.
  Tensor inverse(const Tensor &base, const Tensor &mutated) override {
    // The sum has the strides of the base, to which the view's strides refer;
    // `positionsIn` alone is in row-major order.
    Tensor positions =
        at::add(at::zeros_like(base, at::kLong), positionsIn(base));
    if (mutated.numel() == 0 || positions.strides() != base.strides())
      return recorded->reverse(base, mutated);
    Tensor shown = at::reshape(recorded->forward(positions), {-1});
    Tensor written = writtenPlaces(mutated, recorded->forward(base));
    Tensor order = at::where(written, positionsIn(mutated), -1);
    Tensor last =
        at::scatter_reduce(at::full({base.numel()}, -1, positions.options()), 0,
                           shown, at::reshape(order, {-1}), "amax");
    return withElements(base, mutated, at::view_copy(last, base.sizes()));
  }
};

using MakeView = ViewMetaPtr (*)(ViewMetaPtr recorded,
                                 c10::ArrayRef<c10::IValue> arguments,
                                 const Tensor &view);

/// Records the view like torch, then replaces the record's inverse.
class ViewInverseKernel final : public KernelAround {
public:
  ViewInverseKernel(MakeView make, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), make(make) {}

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    auto given = torch::jit::last(*stack, numArguments);
    if (!given[0].toTensor().device().is_lazy())
      return previous.callBoxed(op, keys, stack);
    std::vector<c10::IValue> arguments(given.begin(), given.end());
    previous.callBoxed(op, keys, stack);
    const Tensor &result = stack->back().toTensor();
    if (!at::functionalization::impl::isFunctionalTensor(result))
      return;
    // The wrapper has no method to replace a record (torch 2.13).
    auto &records = const_cast<std::vector<ViewMetaPtr> &>(
        at::functionalization::impl::unsafeGetFunctionalWrapper(result)
            ->view_metas());
    if (!records.empty())
      records.back() = make(records.back(), arguments, result);
  }

private:
  MakeView make;
};

void replace(const char *name, MakeView make) {
  registerAround<ViewInverseKernel>(findOp({name, ""}),
                                    DispatchKey::Functionalize, make);
}

} // namespace

void torch_ltc::registerViewInverses() {
  SilentRegistration silence;
  replace("aten::expand",
          [](ViewMetaPtr recorded, c10::ArrayRef<c10::IValue>,
             const Tensor &) -> ViewMetaPtr {
            return std::make_shared<ExpandView>(std::move(recorded));
          });
  for (const char *name : {"aten::as_strided", "aten::as_strided_"})
    replace(name,
            [](ViewMetaPtr recorded, c10::ArrayRef<c10::IValue>,
               const Tensor &view) -> ViewMetaPtr {
              if (!mayOverlap(view.sizes(), view.strides()))
                return recorded;
              return std::make_shared<OverlappingView>(std::move(recorded));
            });
  replace("aten::unfold",
          [](ViewMetaPtr recorded, c10::ArrayRef<c10::IValue> arguments,
             const Tensor &) -> ViewMetaPtr {
            return std::make_shared<UnfoldView>(
                std::move(recorded), arguments[1].toInt(), arguments[2].toInt(),
                arguments[3].toInt());
          });
}
