//===- slice_bounds.h - Constant sizes that bound slices --------*- C++ -*-===//
//
// If a program reads `corpus[i : i + n]` with a varying n, the corpus has the
// same number of rows in all traces, but n, whose stand-ins are large, must
// stay below that number. So the constant size becomes a symbol as well, like
// the size that bounds `k` of `topk(x, k)`, the padding of `reflection_pad1d`,
// or the windows of a convolution or a pooling. The rows of `x.view(-1, 12)`
// follow from the sizes of x, so these become symbols.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GENERAL_SLICE_BOUNDS_H
#define TORCH_LTC_GENERAL_SLICE_BOUNDS_H

#include "general/gradient_sizes.h"

#include <map>
#include <set>

namespace torch_ltc {

/// Which constant sizes become symbols because they bound slices of varying
/// lengths.
enum class Bounds : uint8_t {
  Constant, ///< none
  Size,     ///< the bound, and the same dimension of equally shaped parameters
  Equal,    ///< as `Size`; equal integers of arguments become the symbol, too
  All,      ///< as `Equal`, and all equal sizes of parameters
  Operands  ///< as `All`, and the operands' sizes of ops with varying arguments
};

/// A size in a view's argument: the product of `sizes`, indices in
/// `TraceNumbers::sizes`, divided by `divisor`.
struct ViewedSize {
  std::vector<uint32_t> sizes;
  int64_t divisor;
};

/// Numbers that become symbols.
struct SliceBounds {
  std::set<uint32_t> sizes;    ///< indices in `TraceNumbers::sizes`
  std::set<uint32_t> integers; ///< indices in `TraceNumbers::integers`
  /// What a size is a multiple of, if it isn't 1: in `x.view(-1, 12)[:n]`, the
  /// number of rows is a symbol only if the sizes of x stay divisible.
  std::map<uint32_t, int64_t> multiples;
  /// Integers that follow from these symbols, by index in
  /// `TraceNumbers::integers`.
  std::map<uint32_t, ViewedSize> viewedSizes;
  /// Sizes of views that follow from these symbols. An integer with the same
  /// number, such as one of a gradient's `input_sizes`, is the same size.
  std::set<uint32_t> computedSizes;

  bool empty() const { return sizes.empty() && integers.empty(); }
};

/// Returns the sizes of parameters that are the same in all traces and either
/// bound a slice of varying length or are the size after padding of a varying
/// size. In a program of gradients, the bound may be an integer argument of an
/// `expand`, or one of the `input_sizes` of a `slice_backward`. Mode `Operands`
/// adds the sizes of the operands of ops with a varying argument. Sizes that
/// the user has marked as static are left out. `slots`: the graph's slots;
/// `gradients`: the sizes of gradients that windows and paddings determine.
SliceBounds findSliceBounds(const GraphSnapshot &base,
                            const TraceColumns &columns,
                            c10::ArrayRef<NumberSlot> slots,
                            c10::ArrayRef<GradientSize> gradients,
                            Bounds bounds);

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_SLICE_BOUNDS_H
