//===- unchecked_operands.cpp - Operands that eager doesn't check ---------===//

#include "fallback/unchecked_operands.h"

#include "events/op_error.h"

#include <algorithm>

using namespace torch_ltc;
using c10::IValue;

namespace {

/// Checks arguments (LU_data, LU_pivots, unpack_data, unpack_pivots): a matrix
/// of sizes [m, n] must have min(m, n) pivots.
void checkPivots(const std::string &name, c10::ArrayRef<IValue> arguments) {
  const at::Tensor &matrix = arguments[0].toTensor();
  const at::Tensor &pivots = arguments[1].toTensor();
  if (!arguments[3].toBool() || matrix.dim() < 2)
    return;
  std::vector<int64_t> expected = matrix.sizes().vec();
  int64_t columns = expected.back();
  expected.pop_back();
  expected.back() = std::min(expected.back(), columns);
  TORCH_CHECK(pivots.sizes() == at::IntArrayRef(expected),
              "torch.lu_unpack: LU_pivots has sizes ", pivots.sizes(),
              " instead of ", at::IntArrayRef(expected),
              ", as LU_data of sizes ", matrix.sizes(), " requires.",
              opSuffix(name));
}

/// Checks arguments (self, dim, ...): the kernel relies on torch.fft, which
/// checks dims and wraps negative ones.
void checkTransformedDims(const std::string &name,
                          c10::ArrayRef<IValue> arguments) {
  int64_t rank = arguments[0].toTensor().dim();
  for (int64_t dim : arguments[1].toIntVector())
    TORCH_CHECK_INDEX(0 <= dim && dim < rank, name, ": dim ", dim,
                      " doesn't exist in a tensor of ", rank, " dimensions.",
                      opSuffix(name));
}

/// Checks arguments (grad, self, p, pdist): there must be one gradient and one
/// distance for each pair of rows.
void checkDistances(const std::string &name, c10::ArrayRef<IValue> arguments) {
  const at::Tensor &grad = arguments[0].toTensor();
  const at::Tensor &self = arguments[1].toTensor();
  const at::Tensor &distances = arguments[3].toTensor();
  int64_t rows = self.dim() == 2 ? self.size(0) : -1;
  int64_t pairs = rows * (rows - 1) / 2;
  TORCH_CHECK(rows >= 0 && grad.sizes() == at::IntArrayRef(pairs) &&
                  distances.sizes() == at::IntArrayRef(pairs),
              "_pdist_backward: gradient and distances of sizes ", grad.sizes(),
              " and ", distances.sizes(), " don't belong to rows of sizes ",
              self.sizes(), ".", opSuffix(name));
}

struct OperandCheck {
  const char *op;
  void (*check)(const std::string &name, c10::ArrayRef<IValue> arguments);
};

constexpr OperandCheck checks[] = {
    {"aten::lu_unpack", checkPivots},
    {"aten::_fft_c2c", checkTransformedDims},
    {"aten::_fft_c2r", checkTransformedDims},
    {"aten::_fft_r2c", checkTransformedDims},
    {"aten::_pdist_backward", checkDistances},
};

} // namespace

void torch_ltc::checkUncheckedOperands(const c10::OperatorHandle &op,
                                       const torch::jit::Stack &stack) {
  const std::string &name = op.operator_name().name;
  for (const OperandCheck &row : checks)
    if (name == row.op)
      row.check(name, torch::jit::last(stack, op.schema().arguments().size()));
}
