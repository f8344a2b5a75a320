//===- linear.cpp - Sizes of matrix products ------------------------------===//

#include "shape/rules/rules.h"

#include <ATen/ExpandUtils.h>

using namespace torch_ltc;
using at::ScalarType;

namespace {

/// The sizes of the product of the matrices at positions `a` and `b`.
Sizes productSizes(const Arguments &arguments, size_t a, size_t b) {
  TORCH_CHECK(arguments.rank(a) == 2, arguments.name(a),
              " must be a matrix, got ", arguments.rank(a), "-D tensor");
  TORCH_CHECK(arguments.rank(b) == 2, arguments.name(b),
              " must be a matrix, got ", arguments.rank(b), "-D tensor");
  SizesRef left = arguments.sizes(a), right = arguments.sizes(b);
  TORCH_CHECK(left[1] == right[0],
              "mat1 and mat2 shapes cannot be multiplied (", left[0], "x",
              left[1], " and ", right[0], "x", right[1], ")");
  checkSameDType(arguments, {a, b});
  return {left[0], right[1]};
}

Sizes batchProductSizes(const Arguments &arguments, size_t a, size_t b) {
  TORCH_CHECK(arguments.rank(a) == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(arguments.rank(b) == 3, "batch2 must be a 3D tensor");
  SizesRef left = arguments.sizes(a), right = arguments.sizes(b);
  TORCH_CHECK(left[0] == right[0] && left[2] == right[1],
              "Expected size for first two dimensions of batch2 tensor to be: "
              "[",
              left[0], ", ", left[2], "] but got: [", right[0], ", ", right[1],
              "].");
  checkSameDType(arguments, {a, b});
  return {left[0], left[1], right[2]};
}

/// Adds a result of sizes `sizes`: the sum of argument 0 and a product of these
/// sizes.
bool addSum(const Arguments &arguments, ScalarType dtype, SizesRef sizes,
            ResultShapes &results) {
  checkSameDType(arguments, {0, 1});
  checkExpandable(arguments.sizes(0), sizes);
  addResult(results, dtype, sizes);
  return true;
}

bool isLapackType(ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kDouble;
}

} // namespace

bool shape_rules::mm(const Arguments &arguments, ScalarType dtype,
                     ResultShapes &results) {
  addResult(results, dtype, productSizes(arguments, 0, 1));
  return true;
}

bool shape_rules::bmm(const Arguments &arguments, ScalarType dtype,
                      ResultShapes &results) {
  addResult(results, dtype, batchProductSizes(arguments, 0, 1));
  return true;
}

// at::cdist has already broadcast the batches.
bool shape_rules::euclidean_dist(const Arguments &arguments, ScalarType dtype,
                                 ResultShapes &results) {
  int64_t rank = arguments.rank(0);
  if (rank < 2 || arguments.rank(1) != rank || !c10::isFloatingType(dtype) ||
      arguments.dtype(0) != arguments.dtype(1))
    return false;
  SizesRef left = arguments.sizes(0), right = arguments.sizes(1);
  if (left.slice(0, rank - 2) != right.slice(0, rank - 2) ||
      left.back() != right.back())
    return false;
  Sizes sizes(left.begin(), left.end());
  sizes.back() = right[rank - 2];
  addResult(results, dtype, sizes);
  return true;
}

bool shape_rules::square_matrices(const Arguments &arguments, ScalarType dtype,
                                  ResultShapes &results) {
  SizesRef sizes = arguments.sizes(0);
  size_t rank = sizes.size();
  if (rank < 2 || sizes[rank - 1] != sizes[rank - 2] || !isLapackType(dtype))
    return false;
  addResult(results, dtype, sizes);
  return true;
}

// The rule of linalg_solve_triangular(A, B, left=...) and cholesky_solve(B,
// factor).
bool shape_rules::solved_matrices(const Arguments &arguments, ScalarType dtype,
                                  ResultShapes &results) {
  std::optional<size_t> side = arguments.find("left");
  size_t factor = side ? 0 : 1, sides = side ? 1 : 0;
  int64_t rank = arguments.rank(factor), otherRank = arguments.rank(sides);
  if (rank < 2 || otherRank < 2 || !isLapackType(dtype) ||
      arguments.dtype(0) != arguments.dtype(1))
    return false;
  SizesRef matrix = arguments.sizes(factor), other = arguments.sizes(sides);
  bool left = !side || arguments.flag(*side);
  int64_t shared = other[size_t(otherRank) - (left ? 2 : 1)];
  if (matrix[size_t(rank) - 1] != shared || matrix[size_t(rank) - 2] != shared)
    return false;
  at::DimVector sizes = at::infer_size_dimvector(
      matrix.slice(0, matrix.size() - 2), other.slice(0, other.size() - 2));
  sizes.append(other.end() - 2, other.end());
  addResult(results, dtype, sizes);
  return true;
}

bool shape_rules::addmm(const Arguments &arguments, ScalarType dtype,
                        ResultShapes &results) {
  return addSum(arguments, dtype, productSizes(arguments, 1, 2), results);
}

bool shape_rules::baddbmm(const Arguments &arguments, ScalarType dtype,
                          ResultShapes &results) {
  return addSum(arguments, dtype, batchProductSizes(arguments, 1, 2), results);
}

bool shape_rules::addbmm(const Arguments &arguments, ScalarType dtype,
                         ResultShapes &results) {
  Sizes sizes = batchProductSizes(arguments, 1, 2);
  return addSum(arguments, dtype, SizesRef(sizes).slice(1), results);
}

bool shape_rules::mv(const Arguments &arguments, ScalarType dtype,
                     ResultShapes &results) {
  size_t mat = arguments.size() == 2 ? 0 : 1, vec = mat + 1;
  TORCH_CHECK(arguments.rank(mat) == 2 && arguments.rank(vec) == 1 &&
                  arguments.rank(0) <= 2,
              "vector + matrix @ vector expected, got ", arguments.rank(0),
              ", ", arguments.rank(mat), ", ", arguments.rank(vec));
  SizesRef matrix = arguments.sizes(mat);
  TORCH_CHECK(matrix[1] == arguments.sizes(vec)[0],
              "size mismatch, got input (", arguments.sizes(0)[0], "), mat (",
              matrix[0], "x", matrix[1], "), vec (", arguments.sizes(vec)[0],
              ")");
  checkSameDType(arguments, {mat, vec});
  if (mat == 1)
    return addSum(arguments, dtype, {matrix[0]}, results);
  addResult(results, dtype, {matrix[0]});
  return true;
}

bool shape_rules::dot(const Arguments &arguments, ScalarType dtype,
                      ResultShapes &results) {
  TORCH_CHECK(arguments.rank(0) == 1 && arguments.rank(1) == 1,
              "1D tensors expected, but got ", arguments.rank(0), "D and ",
              arguments.rank(1), "D tensors");
  TORCH_CHECK(arguments.dtype(0) == arguments.dtype(1),
              "dot : expected both vectors to have same dtype, but found ",
              c10::toString(arguments.dtype(0)), " and ",
              c10::toString(arguments.dtype(1)));
  int64_t left = arguments.sizes(0)[0], right = arguments.sizes(1)[0];
  TORCH_CHECK(left == right, "inconsistent tensor size, expected tensor [",
              left, "] and src [", right,
              "] to have the same number of elements, but got ", left, " and ",
              right, " elements respectively");
  addResult(results, dtype, {});
  return true;
}

bool shape_rules::addr(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  for (size_t i : {1, 2})
    TORCH_CHECK(arguments.rank(i) == 1, "addr: Expected 1-D argument vec", i,
                ", but got ", arguments.rank(i), "-D");
  int64_t sizes[] = {arguments.sizes(1)[0], arguments.sizes(2)[0]};
  checkExpandable(arguments.sizes(0), sizes);
  addResult(results, dtype, sizes);
  return true;
}

bool shape_rules::linear(const Arguments &arguments, ScalarType dtype,
                         ResultShapes &results) {
  SizesRef input = arguments.sizes(0), weight = arguments.sizes(1);
  TORCH_CHECK(!input.empty() && weight.size() == 2,
              "linear(): input must have a dimension and weight two, but they "
              "are ",
              input.size(), "-D and ", weight.size(), "-D");
  TORCH_CHECK(input.back() == weight[1],
              "linear(): input and weight.T shapes cannot be multiplied (",
              input, " and ", weight[1], "x", weight[0], ")");
  checkSameDType(arguments, {0, 1});
  Sizes &sizes = addResult(results, dtype, input).sizes;
  sizes.back() = weight[0];
  if (arguments.has(2)) {
    checkSameDType(arguments, {0, 2});
    checkExpandable(arguments.sizes(2), sizes);
  }
  return true;
}

/// Checks the sizes of attention's operands, which begin at argument `first`.
/// The tracer checks them before it chooses one of these ops, so an error means
/// that a graph doesn't exist at other sizes.
static void checkAttention(const Arguments &arguments, size_t first,
                           size_t mask) {
  SizesRef query = arguments.sizes(first), key = arguments.sizes(first + 1),
           value = arguments.sizes(first + 2);
  const size_t rank = query.size();
  TORCH_CHECK(key[rank - 1] == query[rank - 1] &&
                  key[rank - 2] == value[rank - 2] &&
                  (rank < 3 || (key[0] == query[0] && value[0] == query[0])),
              "attention: sizes ", query, ", ", key, " and ", value,
              " of query, key and value don't match");
  if (!arguments.has(mask))
    return;
  Sizes scores(query);
  scores.back() = key[rank - 2];
  checkExpandable(arguments.sizes(mask), scores);
}

bool shape_rules::attention(const Arguments &arguments, ScalarType dtype,
                            ResultShapes &results) {
  checkAttention(arguments, 0, 3);
  Sizes sizes(arguments.sizes(0));
  sizes.back() = arguments.sizes(2).back();
  addResult(results, dtype, sizes);
  sizes.pop_back();
  addResult(results, dtype, sizes);
  return true;
}

bool shape_rules::short_attention(const Arguments &arguments, ScalarType dtype,
                                  ResultShapes &results) {
  checkAttention(arguments, 0, 3);
  addResult(results, dtype, arguments.sizes(0));
  return true;
}

bool shape_rules::attention_backward(const Arguments &arguments,
                                     ScalarType dtype, ResultShapes &results) {
  checkAttention(arguments, 1, 6);
  TORCH_CHECK(arguments.sizes(0) == arguments.sizes(4),
              "attention: the gradient has the sizes ", arguments.sizes(0),
              ", but the output has the sizes ", arguments.sizes(4));
  for (size_t like : {1, 2, 3})
    addResult(results, dtype, arguments.sizes(like));
  return true;
}

bool shape_rules::linear_backward(const Arguments &arguments, ScalarType dtype,
                                  ResultShapes &results) {
  SizesRef grad = arguments.sizes(0);
  Sizes sizes(grad);
  auto add = [&](bool exists) {
    if (exists)
      addResult(results, dtype, sizes);
    else
      addUndefined(results);
  };
  if (arguments.has(2))
    sizes.back() = arguments.sizes(2)[1];
  add(arguments.has(2));
  if (arguments.has(1))
    sizes = {grad.back(), arguments.sizes(1).back()};
  add(arguments.has(1));
  sizes = {grad.back()};
  add(arguments[3].toBool());
  return true;
}
