//===- fft_strides.h - Strides of Fourier transforms ------------*- C++ -*-===//

#ifndef TORCH_LTC_SHAPE_RULES_FFT_STRIDES_H
#define TORCH_LTC_SHAPE_RULES_FFT_STRIDES_H

#include "shape/rules/arguments.h"
#include "shape/strides.h"

namespace torch_ltc {

/// Returns the strides of the result of aten::_fft_c2c, _fft_r2c or _fft_c2r:
/// those that PyTorch's MKL kernels return (torch 2.13), up to their limit of
/// seven dims a call.
Strides fftStrides(const Arguments &named, SizesRef resultSizes);

} // namespace torch_ltc

#endif // TORCH_LTC_SHAPE_RULES_FFT_STRIDES_H
