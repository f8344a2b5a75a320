//===- ConvolutionGeometry.h - Sizes of a convolution ---------------------===//

#ifndef TORCH_LTC_RUNTIME_CONVOLUTIONGEOMETRY_H
#define TORCH_LTC_RUNTIME_CONVOLUTIONGEOMETRY_H

// No other header may be included, because LoopKernels.inc doesn't allow
// headers with inline code.
#include <cstdint>

namespace torch_ltc::runtime {

/// A convolution in three spatial dimensions (depth, height, width); missing
/// leading dimensions have size 1, stride 1 and no padding. The struct is plain
/// data, because loops that are compiled for specific instruction sets use it.
struct ConvolutionGeometry {
  int spatialRank = 0; // as given, 1 to 3
  int64_t batch = 0;
  int64_t inputChannels = 0;  // of all groups
  int64_t outputChannels = 0; // of all groups
  int64_t groups = 1;
  int64_t input[3] = {1, 1, 1};
  int64_t kernel[3] = {1, 1, 1};
  int64_t output[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1};
  int64_t padding[3] = {0, 0, 0};
  int64_t dilation[3] = {1, 1, 1};

  int64_t inputPlane() const { return input[0] * input[1] * input[2]; }
  int64_t kernelPlane() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t outputPlane() const { return output[0] * output[1] * output[2]; }
  int64_t inputElements() const { return batch * inputChannels * inputPlane(); }
  int64_t weightElements() const {
    return outputChannels * (inputChannels / groups) * kernelPlane();
  }
  int64_t outputElements() const {
    return batch * outputChannels * outputPlane();
  }
};

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_CONVOLUTIONGEOMETRY_H
