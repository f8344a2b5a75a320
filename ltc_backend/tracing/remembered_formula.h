//===- remembered_formula.h - Formulas in Python, run once ------*- C++ -*-===//
//
// Some ops are rewritten into traced ops by formulas in Python. A formula takes
// 30 to 800 us for each call, far longer than eager's whole op. A formula sees
// sizes, dtypes and numbers, but no values, so calls that agree in these (calls
// of one kind) trace the same ops. The first call of a kind runs the formula
// and remembers the calls that it traces; later calls of the kind repeat the
// traced calls without Python.
//
// If the formula does something besides tracing calls (it generates random
// numbers, reads values, uses tensors other than its operands, writes in
// place or falls back to eager), calls of this kind always run the formula.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_TRACING_REMEMBERED_FORMULA_H
#define TORCH_LTC_TRACING_REMEMBERED_FORMULA_H

#include "ir/op_record.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace torch_ltc {

class CallCollector;

/// Collects the calls of the formula that the thread runs; null if it runs
/// none.
extern thread_local CallCollector *currentCollector;

void collectCall(const OpRecord &record, c10::ArrayRef<c10::IValue> arguments,
                 const std::vector<at::Tensor> &results);

/// Must be called after each traced call.
inline void noteTracedCall(const OpRecord &record,
                           c10::ArrayRef<c10::IValue> arguments,
                           const std::vector<at::Tensor> &results) {
  if (currentCollector) [[unlikely]]
    collectCall(record, arguments, results);
}

/// Remembers the formulas of these ops ("aten::trace"), whose kernels at Lazy
/// and AutogradLazy are formulas in Python. Calls without a gradient skip the
/// formula at AutogradLazy and use the one at Lazy.
void rememberFormulas(const std::vector<std::string> &ops);
/// Whether the op's kernel at Lazy is such a formula.
bool hasFormula(const c10::OperatorHandle &op);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_REMEMBERED_FORMULA_H
