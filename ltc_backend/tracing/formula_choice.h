//===- formula_choice.h - Host calls or formulas ----------------*- C++ -*-===//
//
// An op that has both a row in the op table and a formula in Python
// (python/torch_ltc/_decompositions) is traced as one op, which becomes a host
// call. Its formula is for other compilers, which can't call PyTorch's kernels,
// and for calls that the formula computes faster.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_TRACING_FORMULA_CHOICE_H
#define TORCH_LTC_TRACING_FORMULA_CHOICE_H

#include "ir/op_record.h"

#include <ATen/core/ivalue.h>

namespace torch_ltc {

/// Whether a call of the op, which has a row and a formula, is traced as the
/// formula.
bool wantsFormula(const OpRecord &record, c10::ArrayRef<c10::IValue> arguments);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_FORMULA_CHOICE_H
