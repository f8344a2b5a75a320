//===- shape_inference.cpp - Closed forms by the op table's rules ---------===//

#include "shape/shape_inference.h"

#include "ir/op_record.h"
#include "shape/rules/rules.h"

using namespace torch_ltc;

namespace {

using ShapeFunction = bool (*)(const Arguments &, at::ScalarType,
                               ResultShapes &);
using DTypeFunction = at::ScalarType (*)(const Arguments &);

// Functions in the order of the enumerators, which come from the same list.
constexpr ShapeFunction shapeFunctions[] = {
#define OP_SHAPE_RULE(Name) &shape_rules::Name,
#include "OpRules.inc"
};

constexpr DTypeFunction dtypeFunctions[] = {
#define OP_DTYPE_RULE(Name) &dtype_rules::Name,
#include "OpRules.inc"
};

} // namespace

bool shape_rules::meta(const Arguments &, at::ScalarType, ResultShapes &) {
  return false;
}

at::ScalarType dtype_rules::meta(const Arguments &) {
  return at::ScalarType::Undefined;
}

bool torch_ltc::inferClosedForm(ShapeRule shapeRule, DTypeRule dtypeRule,
                                const c10::FunctionSchema &schema,
                                c10::ArrayRef<c10::IValue> arguments,
                                ResultShapes &results) {
  results.clear();
  if (shapeRule == ShapeRule::metaShape)
    return false;
  try {
    Arguments view(schema, arguments);
    at::ScalarType dtype = dtypeFunctions[size_t(dtypeRule)](view);
    // The dtype rules don't distinguish ops that have real results for complex
    // operands.
    if (dtype == at::ScalarType::Undefined || c10::isComplexType(dtype))
      return false;
    if (shapeFunctions[size_t(shapeRule)](view, dtype, results))
      return true;
    results.clear();
    return false;
  } catch (c10::Error &error) {
    results.clear();
    error.add_context(c10::str("in ", schema.operator_name()));
    throw;
  }
}
