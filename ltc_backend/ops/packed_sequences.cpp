//===- packed_sequences.cpp - Packed sequences as padded ones -------------===//

#include "ops/packed_sequences.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <numeric>
#include <vector>

using namespace torch_ltc;
using at::Tensor;
using Indices = std::vector<int64_t>;

namespace {

/// Maximum ratio of padded rows to packed ones: products with this many times
/// the rows still take less time than a separate call for each step.
constexpr int64_t kMaxPadding = 3;

/// Returns the batch sizes, or an empty list if they aren't valid for
/// `numElements`.
Indices checkedSizes(const Tensor &batchSizes, int64_t numElements) {
  if (!batchSizes.device().is_cpu() || batchSizes.dim() != 1 ||
      batchSizes.scalar_type() != at::kLong || !batchSizes.numel())
    return {};
  Tensor dense = batchSizes.contiguous();
  const auto *data = dense.const_data_ptr<int64_t>();
  Indices sizes(data, data + dense.numel());
  if (!std::is_sorted(sizes.rbegin(), sizes.rend()) || sizes.back() < 1 ||
      std::accumulate(sizes.begin(), sizes.end(), int64_t(0)) != numElements)
    return {};
  return sizes;
}

Tensor moved(const Indices &indices, const Tensor &data) {
  return at::tensor(indices, at::kLong).to(data.device());
}

} // namespace

std::optional<Packing> Packing::of(const Tensor &batchSizes, const Tensor &data,
                                   bool bidirectional) {
  if (data.dim() != 2)
    return std::nullopt;
  Packing packing;
  packing.numElements = data.size(0);
  const Indices sizes = checkedSizes(batchSizes, packing.numElements);
  if (sizes.empty())
    return std::nullopt;
  const int64_t steps = packing.numSteps = int64_t(sizes.size());
  const int64_t batch = packing.numSequences = sizes[0];
  if (steps * batch > kMaxPadding * packing.numElements)
    return std::nullopt;

  Indices begins(sizes.size()), lengths(size_t(batch), 0), lastRows;
  std::exclusive_scan(sizes.begin(), sizes.end(), begins.begin(), int64_t(0));
  for (int64_t size : sizes)
    for (int64_t b = 0; b < size; ++b)
      ++lengths[size_t(b)];
  for (int64_t b = 0; b < batch; ++b)
    lastRows.push_back((lengths[size_t(b)] - 1) * batch + b);
  packing.lastRows = moved(lastRows, data);
  for (int backwards = 0; backwards <= int(bidirectional); ++backwards) {
    // Rows without an element refer to the filler, which follows the elements.
    Indices elements(size_t(steps * batch), packing.numElements);
    Indices rows(size_t(packing.numElements));
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t t = 0; t < lengths[size_t(b)]; ++t) {
        int64_t step = backwards ? lengths[size_t(b)] - 1 - t : t;
        int64_t element = begins[size_t(t)] + b, row = step * batch + b;
        elements[size_t(row)] = element;
        rows[size_t(element)] = row;
      }
    packing.elements[backwards] = moved(elements, data);
    packing.rows[backwards] = moved(rows, data);
  }
  return packing;
}

Tensor Packing::pad(const Tensor &packed, const Tensor &filler,
                    bool backwards) const {
  Tensor all = numSteps * numSequences == numElements
                   ? packed
                   : at::cat({packed, filler});
  return all.index_select(0, elements[backwards])
      .unflatten(0, {numSteps, numSequences});
}

Tensor Packing::pack(const Tensor &steps, bool backwards) const {
  return steps.flatten(0, 1).index_select(0, rows[backwards]);
}

Tensor Packing::last(const Tensor &steps) const {
  return steps.flatten(0, 1).index_select(0, lastRows);
}
