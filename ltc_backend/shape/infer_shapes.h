//===- infer_shapes.h - Shapes and dtypes of an op's results ----*- C++ -*-===//
//
// The tracer's interface to shape/. Shapes come from the closed form that the
// op table names, otherwise from the cache keyed by the attributes and the
// operands' shapes, otherwise from PyTorch's Meta kernel.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_SHAPE_INFER_SHAPES_H
#define TORCH_LTC_SHAPE_INFER_SHAPES_H

#include "shape/op_call.h"

#include <vector>

namespace torch_ltc {

/// Returns one shape for each result, with dtype Undefined if the op leaves the
/// result undefined. Throws PyTorch's error with the op's name and the user's
/// line.
std::vector<torch::lazy::Shape> inferShapes(const OpCall &call);

/// Like inferShapes, for a call that a trace already contains at different
/// sizes. Neither checks the call with eager's kernel nor adds the op's name
/// and the user's line to errors.
std::vector<torch::lazy::Shape> inferShapesOnly(const OpCall &call);

} // namespace torch_ltc

#endif // TORCH_LTC_SHAPE_INFER_SHAPES_H
