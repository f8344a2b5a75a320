//===- convolution_strides.h - Strides of convolutions ----------*- C++ -*-===//

#ifndef TORCH_LTC_SHAPE_RULES_CONVOLUTION_STRIDES_H
#define TORCH_LTC_SHAPE_RULES_CONVOLUTION_STRIDES_H

#include "shape/rules/arguments.h"
#include "shape/strides.h"

namespace torch_ltc {

/// Returns the strides of a result of aten::convolution or
/// aten::convolution_backward: those of the memory format that PyTorch's choice
/// of a library on the CPU determines (torch 2.13).
Strides convolutionStrides(const Arguments &named, SizesRef resultSizes);

} // namespace torch_ltc

#endif // TORCH_LTC_SHAPE_RULES_CONVOLUTION_STRIDES_H
