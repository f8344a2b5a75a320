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

/// Appends the results' shapes. `dtype` comes from the row's dtype rule; the
/// first result has it, and so do the others unless the rule knows better.
/// Returns false if only the Meta kernel knows the shapes.
namespace shape_rules {
#define OP_SHAPE_RULE(Name)                                                    \
  bool Name(const Arguments &arguments, at::ScalarType dtype,                  \
            ResultShapes &results);
#include "OpRules.inc"
} // namespace shape_rules

/// The dtype of the first result; Undefined if only the Meta kernel knows it.
namespace dtype_rules {
#define OP_DTYPE_RULE(Name) at::ScalarType Name(const Arguments &arguments);
#include "OpRules.inc"
} // namespace dtype_rules

} // namespace torch_ltc

#endif // TORCH_LTC_SHAPE_RULES_RULES_H
