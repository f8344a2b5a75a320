//===- nearest_scales.cpp - Scales that eager's kernels ignore ------------===//
//
// PyTorch's nearest interpolation multiplies a position by the reciprocal of
// the given scale. Its kernels for gradients, for small images and for images
// with channels last (`nearest_idx` in UpSampleKernel.cpp) ignore the scale if
// the output is as large as the input or twice as large. For example, a scale
// of 2.04 makes 40 rows out of 20, two copies of each row. Here, ignored scales
// are removed from the arguments: without a scale, the quotient of the sizes
// gives the same positions. So are whole scales whose reciprocal is that
// quotient, so that images of all sizes have the same arguments.
//
//===----------------------------------------------------------------------===//

#include "ops/registration.h"

#include <ATen/core/Tensor.h>

#include <cmath>

using namespace torch_ltc;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// Whether eager computes the values with a kernel that ignores scales (torch
/// 2.13).
bool ignoresScales(const at::Tensor &image, c10::ArrayRef<int64_t> output) {
  constexpr int64_t kMaxSmall = 128, kMinChannels = 4;
  return output[0] + output[1] <= kMaxSmall ||
         (image.is_contiguous(at::MemoryFormat::ChannelsLast) &&
          image.size(1) >= kMinChannels);
}

/// Whether the scale is whole and gives the same positions as the quotient of
/// the sizes, both of which are computed in single precision.
bool isQuotient(const IValue &scale, int64_t input, int64_t output) {
  return scale.isDouble() && scale.toDouble() >= 1 &&
         scale.toDouble() == std::floor(scale.toDouble()) &&
         float(1 / scale.toDouble()) == float(input) / float(output);
}

/// Removes ignored scales from the arguments of upsample_nearest2d (self,
/// output_size, scales_h, scales_w) or of its gradient (grad_output,
/// output_size, input_size, scales_h, scales_w).
template <bool isGradient>
class NearestScales final : public c10::OperatorKernel {
public:
  explicit NearestScales(c10::SafeKernelFunction kernel)
      : kernel(std::move(kernel)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    const at::Tensor &image = arguments[0].toTensor();
    std::vector<int64_t> input =
        isGradient ? arguments[2].toIntVector() : image.sizes().vec();
    std::vector<int64_t> output = arguments[1].toIntVector();
    // If a list of sizes has the wrong length, the op raises an error.
    if (input.size() == 4 && output.size() == 2) {
      bool areIgnored = isGradient || ignoresScales(image, output);
      for (size_t dim : {0, 1}) {
        IValue &scale = torch::jit::peek(*stack, dim, 2);
        int64_t size = input[dim + 2];
        if ((areIgnored && (output[dim] == size || output[dim] == 2 * size)) ||
            isQuotient(scale, size, output[dim]))
          scale = IValue();
      }
    }
    kernel.callBoxed(op, keys, stack);
  }

private:
  c10::SafeKernelFunction kernel;
};

} // namespace

void torch_ltc::registerNearestScales() {
  registerAround<NearestScales<false>>(findOp({"aten::upsample_nearest2d", ""}),
                                       c10::DispatchKey::Lazy);
  registerAround<NearestScales<true>>(
      findOp({"aten::upsample_nearest2d_backward", ""}),
      c10::DispatchKey::Lazy);
}
