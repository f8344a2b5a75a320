//===- recurrence.cpp - Sizes of recurrent layers -------------------------===//
//
// ops/recurrence.h gives the sizes of operands and results.
//
//===----------------------------------------------------------------------===//

#include "shape/rules/rules.h"

using namespace torch_ltc;
using at::ScalarType;

namespace {

/// The sizes [T, B, `last`], with T and B of the argument at `like`.
Sizes ofSteps(const Arguments &arguments, size_t like, int64_t last) {
  Sizes sizes(arguments.sizes(like));
  sizes.back() = last;
  return sizes;
}

} // namespace

bool shape_rules::lstm(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  SizesRef state = arguments.sizes(1);
  Sizes output = ofSteps(arguments, 0, state.back());
  addResult(results, dtype, output);
  addResult(results, dtype, state);
  addResult(results, dtype, state);
  addResult(results, dtype, arguments.sizes(0));
  addResult(results, dtype, output);
  return true;
}

bool shape_rules::lstm_backward(const Arguments &arguments, ScalarType dtype,
                                ResultShapes &results) {
  for (size_t like : {7, 3, 4, 5})
    addResult(results, dtype, arguments.sizes(like));
  return true;
}

bool shape_rules::gru(const Arguments &arguments, ScalarType dtype,
                      ResultShapes &results) {
  SizesRef state = arguments.sizes(1);
  addResult(results, dtype, ofSteps(arguments, 0, state.back()));
  addResult(results, dtype, state);
  addResult(results, dtype, ofSteps(arguments, 0, 4 * state.back()));
  return true;
}

bool shape_rules::gru_backward(const Arguments &arguments, ScalarType dtype,
                               ResultShapes &results) {
  SizesRef weight = arguments.sizes(3);
  addResult(results, dtype, ofSteps(arguments, 5, weight[0]));
  addResult(results, dtype, arguments.sizes(2));
  addResult(results, dtype, weight);
  addResult(results, dtype, weight.slice(0, 1));
  return true;
}

bool shape_rules::rnn(const Arguments &arguments, ScalarType dtype,
                      ResultShapes &results) {
  for (size_t like : {0, 1})
    addResult(results, dtype, arguments.sizes(like));
  return true;
}

bool shape_rules::rnn_backward(const Arguments &arguments, ScalarType dtype,
                               ResultShapes &results) {
  for (size_t like : {4, 2, 3})
    addResult(results, dtype, arguments.sizes(like));
  return true;
}
