//===- rules.h - One function for each rule of the op table -----*- C++ -*-===//
//
// The functions have the names of the table's rules, so that a rule without a
// function fails to link.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_SHAPE_RULES_RULES_H
#define TORCH_LTC_SHAPE_RULES_RULES_H

#include "shape/rules/arguments.h"

namespace torch_ltc {

/// Each function appends the results' shapes. `dtype`, from the row's dtype
/// rule, is the dtype of each result whose dtype the shape rule doesn't
/// determine. Returns false if only the Meta kernel can determine the shapes.
namespace shape_rules {
#define OP_SHAPE_RULE(Name)                                                    \
  bool Name(const Arguments &arguments, at::ScalarType dtype,                  \
            ResultShapes &results);
#include "OpRules.inc"
} // namespace shape_rules

/// Each function returns the dtype of the first result, or Undefined if only
/// the Meta kernel can determine it.
namespace dtype_rules {
#define OP_DTYPE_RULE(Name) at::ScalarType Name(const Arguments &arguments);
#include "OpRules.inc"
} // namespace dtype_rules

} // namespace torch_ltc

#endif // TORCH_LTC_SHAPE_RULES_RULES_H
