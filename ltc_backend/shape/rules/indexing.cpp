//===- indexing.cpp - Sizes of gathers and scatters -----------------------===//

#include "shape/rules/rules.h"

#include <algorithm>

using namespace torch_ltc;
using at::ScalarType;

namespace {

bool isIndexType(ScalarType dtype) {
  return dtype == ScalarType::Long || dtype == ScalarType::Int;
}

/// The size of a vector; a scalar is treated as a vector of size 1.
int64_t vectorSize(SizesRef sizes) { return sizes.empty() ? 1 : sizes[0]; }

SizesRef atLeast1D(SizesRef sizes) {
  static constexpr int64_t one[] = {1};
  return sizes.empty() ? SizesRef(one) : sizes;
}

/// Checks the sizes of gather's and scatter's `index` (argument 2) against
/// those of self (argument 0), except in dimension `dim` (argument 1).
void checkIndexFits(const Arguments &arguments) {
  int64_t dim = dimFromFront(arguments.integer(1), arguments.rank(0));
  SizesRef index = arguments.sizes(2);
  // With an empty index, the op reads and writes nothing.
  if (numElements(index) == 0)
    return;
  TORCH_CHECK(arguments.dtype(2) == ScalarType::Long ||
                  arguments.dtype(2) == ScalarType::Int,
              arguments.opName(), "(): Expected dtype int32/int64 for index");
  SizesRef self = atLeast1D(arguments.sizes(0));
  index = atLeast1D(index);
  TORCH_CHECK(self.size() == index.size(),
              "Index tensor must have the same number of dimensions as ",
              arguments.name(0), " tensor");
  for (int64_t i = 0; i < int64_t(self.size()); ++i)
    TORCH_CHECK(i == dim || index[i] <= self[i],
                "Size does not match at dimension ", i, " expected index ",
                index, " to be no larger than self ", self,
                " apart from dimension ", dim);
}

void checkSourceCovers(const Arguments &arguments, size_t source) {
  TORCH_CHECK(arguments.dtype(0) == arguments.dtype(source), arguments.opName(),
              "(): Expected self.dtype to be equal to src.dtype");
  if (numElements(arguments.sizes(2)) == 0)
    return;
  SizesRef index = atLeast1D(arguments.sizes(2));
  SizesRef covered = atLeast1D(arguments.sizes(source));
  TORCH_CHECK(index.size() == covered.size(),
              "Index tensor must have the same number of dimensions as src "
              "tensor");
  for (size_t i = 0; i < index.size(); ++i)
    TORCH_CHECK(index[i] <= covered[i], "Expected index ", index,
                " to be no larger size than src ", covered);
}

void checkIndexVector(const Arguments &arguments) {
  TORCH_CHECK_INDEX(arguments.rank(2) <= 1, arguments.opName(),
                    "(): Index is supposed to be a vector");
  TORCH_CHECK(isIndexType(arguments.dtype(2)), arguments.opName(),
              "(): Expected dtype int32 or int64 for index");
}

} // namespace

bool shape_rules::index_select(const Arguments &arguments, ScalarType dtype,
                               ResultShapes &results) {
  checkIndexVector(arguments);
  int64_t dim = dimFromFront(arguments.integer(1), arguments.rank(0));
  int64_t count = vectorSize(arguments.sizes(2));
  Sizes &sizes = addResult(results, dtype, arguments.sizes(0)).sizes;
  if (!sizes.empty())
    sizes[dim] = count;
  else
    TORCH_CHECK(count == 1,
                "index_select(): Index to scalar can have only 1 "
                "value, got ",
                count, " value(s)");
  return true;
}

bool shape_rules::gather(const Arguments &arguments, ScalarType dtype,
                         ResultShapes &results) {
  checkIndexFits(arguments);
  addResult(results, dtype, arguments.sizes(2));
  return true;
}

// The rule of scatter.src, scatter.value, scatter_add and scatter_reduce.
bool shape_rules::scatter(const Arguments &arguments, ScalarType dtype,
                          ResultShapes &results) {
  checkIndexFits(arguments);
  if (arguments[3].isTensor())
    checkSourceCovers(arguments, 3);
  return self(arguments, dtype, results);
}

bool shape_rules::index_add(const Arguments &arguments, ScalarType dtype,
                            ResultShapes &results) {
  checkIndexVector(arguments);
  int64_t dim = dimFromFront(arguments.integer(1), arguments.rank(0));
  SizesRef self = arguments.sizes(0), source = arguments.sizes(3);
  TORCH_CHECK(arguments.dtype(0) == arguments.dtype(3), arguments.opName(),
              "(): self and source expected to have the same dtype, but got "
              "(self) ",
              c10::toString(arguments.dtype(0)), " and (source) ",
              c10::toString(arguments.dtype(3)));
  int64_t count = numElements(arguments.sizes(2));
  int64_t extent =
      source.empty() ? 1 : source[std::min<size_t>(dim, source.size() - 1)];
  TORCH_CHECK_INDEX(
      count == extent, arguments.opName(), "(): Number of indices (", count,
      ") should be equal to source.size(dim): (", extent, "), for dim: ", dim);
  bool matches = source.size() == self.size();
  for (int64_t i = 0; matches && i < int64_t(source.size()); ++i)
    matches = i == dim || source[i] == self[i];
  TORCH_CHECK(matches, arguments.opName(),
              "(): Source/destination tensor must have same slice shapes. "
              "Destination slice shape: ",
              self, " at dimension ", dim, " and source slice shape: ", source,
              " at dimension ", dim, ".");
  addResult(results, dtype, self);
  return true;
}

bool shape_rules::put(const Arguments &arguments, ScalarType dtype,
                      ResultShapes &results) {
  TORCH_CHECK_INDEX(arguments.dtype(1) == ScalarType::Long,
                    "put_(): Expected a long tensor for index, but got ",
                    c10::toString(arguments.dtype(1)));
  TORCH_CHECK(arguments.dtype(0) == arguments.dtype(2),
              "put_(): self and source expected to have the same dtype, but "
              "got self.dtype = ",
              c10::toString(arguments.dtype(0)),
              " and source.dtype = ", c10::toString(arguments.dtype(2)));
  int64_t count = numElements(arguments.sizes(1));
  int64_t available = numElements(arguments.sizes(2));
  TORCH_CHECK_INDEX(count == available,
                    "put_(): Expected source and index to have the same number "
                    "of elements, but got source.numel() = ",
                    available, ", index.numel() = ", count);
  TORCH_CHECK_INDEX(count == 0 || numElements(arguments.sizes(0)) != 0,
                    "put_(): Tried to put elements into an empty tensor");
  addResult(results, dtype, arguments.sizes(0));
  return true;
}

bool shape_rules::index_copy(const Arguments &arguments, ScalarType dtype,
                             ResultShapes &results) {
  int64_t dim = dimFromFront(arguments.integer(1), arguments.rank(0));
  SizesRef self = arguments.sizes(0), source = arguments.sizes(3);
  TORCH_CHECK_INDEX(arguments.rank(2) <= 1,
                    "index_copy_(): Index should have dimension 1 or 0 (got ",
                    arguments.rank(2), ")");
  TORCH_CHECK_INDEX(arguments.dtype(2) == ScalarType::Long,
                    "index_copy_(): Expected a long tensor for index, but got ",
                    c10::toString(arguments.dtype(2)));
  TORCH_CHECK(arguments.dtype(0) == arguments.dtype(3),
              "index_copy_(): self and source expected to have the same dtype, "
              "but got (self) ",
              c10::toString(arguments.dtype(0)), " and (source) ",
              c10::toString(arguments.dtype(3)));
  TORCH_CHECK_INDEX(
      source.size() == self.size() || source.empty() || self.empty(),
      "index_copy_(): When source and destination are not "
      "scalars, their dimensionality must match. Source "
      "dimensionality (",
      source.size(), "), destination dimensionality (", self.size(), ")");
  auto slice = [dim](SizesRef sizes) {
    Sizes result(sizes);
    if (!result.empty())
      result.erase(result.begin() + std::min<int64_t>(dim, sizes.size() - 1));
    return result;
  };
  TORCH_CHECK(slice(self) == slice(source),
              "index_copy_(): Source/destination tensor must have same slice "
              "shapes. Destination slice shape: ",
              SizesRef(slice(self)), " at dimension ", dim,
              " and source slice shape: ", SizesRef(slice(source)),
              " at dimension 0.");
  int64_t count = vectorSize(arguments.sizes(2));
  int64_t extent = source.empty() ? 1 : source[dim];
  TORCH_CHECK_INDEX(count == extent, "index_copy_(): Number of indices (",
                    count, ") should be equal to source.size(dim) (", extent,
                    ")");
  addResult(results, dtype, self);
  return true;
}

bool shape_rules::index_fill(const Arguments &arguments, ScalarType dtype,
                             ResultShapes &results) {
  dimFromFront(arguments.integer(1), arguments.rank(0));
  TORCH_CHECK_INDEX(arguments.dtype(2) == ScalarType::Long,
                    "index_fill_(): Expected dtype int64 for index.");
  TORCH_CHECK(arguments.rank(2) <= 1, "Index has to be a vector/scalar");
  return self(arguments, dtype, results);
}

bool shape_rules::masked_scatter(const Arguments &arguments, ScalarType dtype,
                                 ResultShapes &results) {
  TORCH_CHECK(arguments.dtype(0) == arguments.dtype(2),
              "masked_scatter: expected self and source to have same dtypes "
              "but got ",
              c10::toString(arguments.dtype(0)), " and ",
              c10::toString(arguments.dtype(2)));
  TORCH_CHECK(arguments.dtype(1) == ScalarType::Bool,
              "masked_scatter_ only supports boolean masks, but got mask with "
              "dtype ",
              c10::toString(arguments.dtype(1)));
  broadcastInto(addResult(results, dtype, arguments.sizes(0)).sizes,
                arguments.sizes(1));
  return true;
}

bool shape_rules::bucketize(const Arguments &arguments, ScalarType,
                            ResultShapes &results) {
  TORCH_CHECK(arguments.rank(1) == 1,
              "boundaries tensor must be 1 dimension, but got dim(",
              arguments.rank(1), ")");
  addResult(results, arguments.flag(2) ? ScalarType::Int : ScalarType::Long,
            arguments.sizes(0));
  return true;
}

namespace {

/// Computes the sizes of `self[indices]` for integer indices. Returns false for
/// masks, whose values determine the sizes. The indices' dims replace the
/// indexed dims if these are adjacent; otherwise the indices' dims come first,
/// as in NumPy.
bool indexedSizes(const Arguments &arguments, Sizes &result) {
  SizesRef self = arguments.sizes(0);
  c10::ArrayRef<c10::IValue> indices = arguments[1].toListRef();
  TORCH_CHECK_INDEX(indices.size() <= self.size(),
                    "too many indices for tensor of dimension ", self.size(),
                    " (got ", indices.size(), ")");
  Sizes indexed;
  size_t first = 0, last = 0, numIndices = 0;
  bool hasEmptyDim = false;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i].isNone() || !indices[i].toTensor().defined())
      continue;
    const at::Tensor &index = indices[i].toTensor();
    ScalarType dtype = index.scalar_type();
    if (dtype == ScalarType::Bool || dtype == ScalarType::Byte)
      return false;
    TORCH_CHECK_INDEX(isIndexType(dtype),
                      "tensors used as indices must be long, int, byte or bool "
                      "tensors");
    first = numIndices++ ? first : i;
    last = i;
    hasEmptyDim |= self[i] == 0;
    try {
      broadcastInto(indexed, index.sizes());
    } catch (const c10::Error &) {
      TORCH_CHECK_INDEX(false,
                        "shape mismatch: indexing tensors could not be "
                        "broadcast together with shapes ",
                        SizesRef(indexed), ", ", index.sizes());
    }
  }
  TORCH_CHECK_INDEX(!hasEmptyDim || numElements(indexed) == 0,
                    "index is out of bounds for dimension with size 0");
  TORCH_CHECK(numIndices > 0, "at least one index must be provided");
  bool adjacent = last - first + 1 == numIndices;
  size_t place = adjacent ? first : 0;
  for (size_t i = 0; i < self.size(); ++i)
    if (i >= indices.size() || indices[i].isNone() ||
        !indices[i].toTensor().defined())
      result.push_back(self[i]);
  result.insert(result.begin() + place, indexed.begin(), indexed.end());
  return true;
}

} // namespace

bool shape_rules::index(const Arguments &arguments, ScalarType dtype,
                        ResultShapes &results) {
  Sizes sizes;
  if (!indexedSizes(arguments, sizes))
    return false;
  addResult(results, dtype, sizes);
  return true;
}

bool shape_rules::index_put(const Arguments &arguments, ScalarType dtype,
                            ResultShapes &results) {
  TORCH_CHECK_INDEX(arguments.dtype(2) == dtype,
                    "Index put requires the source and destination dtypes "
                    "match, got ",
                    c10::toString(dtype), " for the destination and ",
                    c10::toString(arguments.dtype(2)), " for the source.");
  Sizes sizes;
  // A mask determines the number of written elements, but not the result's
  // size.
  if (indexedSizes(arguments, sizes)) {
    SizesRef values = arguments.sizes(2);
    // PyTorch drops excess leading dims of size 1.
    while (values.size() > sizes.size() && values[0] == 1)
      values = values.slice(1);
    bool fits = values.size() <= sizes.size();
    for (size_t i = 0; fits && i < values.size(); ++i)
      fits = values[i] == 1 ||
             values[i] == sizes[sizes.size() - values.size() + i];
    TORCH_CHECK(
        fits, "shape mismatch: value tensor of shape ", arguments.sizes(2),
        " cannot be broadcast to indexing result of shape ", SizesRef(sizes));
  }
  return self(arguments, dtype, results);
}
