//===- formula_choice.cpp - Host calls or formulas ------------------------===//

#include "tracing/formula_choice.h"

#include "compilation/external_backend.h"
#include "events/portable_trace.h"

#include <ATen/core/Tensor.h>

#include <cmath>

using namespace torch_ltc;
using c10::IValue;

namespace {

const IValue *findArgument(const OpRecord &record,
                           c10::ArrayRef<IValue> arguments,
                           std::string_view name) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (record.arguments[i].name == name)
      return &arguments[i];
  return nullptr;
}

/// Whether PyTorch's kernels compute this norm of differences without powers.
/// Kernels with powers take two to ten times as long as the compiled formula.
bool isSimpleNorm(double p) {
  return p == 0 || p == 1 || p == 2 || std::isinf(p);
}

/// Whether a bag of embeddings has a sparse gradient, which can't be traced, or
/// a table whose rows have gaps: whether the kernel leaves a result empty then
/// depends on strides, which programs don't have.
bool isUnusualBag(const OpRecord &record, c10::ArrayRef<IValue> arguments) {
  const IValue *sparse = findArgument(record, arguments, "sparse");
  if (record.family != Family::embedding || !sparse)
    return false;
  const at::Tensor &rows = arguments[0].toTensor();
  return sparse->toBool() || rows.dim() != 2 || rows.stride(1) != 1;
}

} // namespace

bool torch_ltc::wantsFormula(const OpRecord &record,
                             c10::ArrayRef<IValue> arguments) {
  // PyTorch's formulas give other results than its kernels for images of bytes,
  // so such images are left to the kernels, which exported programs call, too.
  const bool isOfBytes =
      at::isIntegralType(arguments[0].toTensor().scalar_type(), false);
  if ((isPortableTrace() && !isOfBytes) ||
      isUnsupportedByBackend(record.emitName) ||
      isUnusualBag(record, arguments))
    return true;
  const IValue *p = findArgument(record, arguments, "p");
  return p && !isSimpleNorm(p->toDouble());
}
