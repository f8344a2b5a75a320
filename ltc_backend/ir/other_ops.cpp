//===- other_ops.cpp - Facts about ops without a row ----------------------===//

#include "ir/other_ops.h"

using namespace torch_ltc;

namespace {

struct OtherOp {
  OpFact fact;
  /// An op, or with `*` at its end, all ops whose names begin with it. PyTorch
  /// names hundreds of ops after what they have in common.
  std::string_view pattern;
};

constexpr OtherOp otherOps[] = {
    {OpFact::IsComposed, "aten::_foreach_*"},
    {OpFact::IsComposed, "aten::_pin_memory"},
    {OpFact::IsComposed, "aten::_unsafe_index.Tensor"},
    {OpFact::IsComposed, "aten::_unsafe_masked_index"},
    {OpFact::IsComposed, "aten::_unsafe_masked_index_put_accumulate"},
    {OpFact::IsComposed, "aten::count_nonzero"},
    {OpFact::IsComposed, "aten::dense_dim"},
    {OpFact::IsComposed, "aten::empty_permuted"},
    {OpFact::IsComposed, "aten::is_coalesced"},
    {OpFact::IsComposed, "aten::is_pinned"},
    {OpFact::IsComposed, "aten::is_same_size"},
    {OpFact::IsComposed, "aten::sparse_dim"},
    {OpFact::RepeatsOp, "aten::_foreach_*"},
    // The gradients of `to_padded_tensor` and `unbind` call these.
    {OpFact::MakesNested, "aten::_nested_from_padded"},
    {OpFact::MakesNested, "aten::_nested_tensor_from_tensor_list"},
};

bool includes(std::string_view pattern, std::string_view op) {
  return pattern.ends_with('*')
             ? op.starts_with(pattern.substr(0, pattern.size() - 1))
             : op == pattern;
}

} // namespace

bool torch_ltc::holds(OpFact fact, std::string_view op) {
  for (const OtherOp &row : otherOps)
    if (row.fact == fact && includes(row.pattern, op))
      return true;
  return false;
}
