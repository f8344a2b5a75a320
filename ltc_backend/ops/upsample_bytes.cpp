//===- upsample_bytes.cpp - Interpolation of uint8 images -----------------===//
//
// torch's kernels interpolate bytes with fixed-point weights and round
// intermediate results (torch 2.13), so a floating-point formula is sometimes
// off by one. Therefore the op is a host call of torch's kernels.
//
//===----------------------------------------------------------------------===//

#include <ATen/Functions.h>
#include <torch/library.h>

#include <optional>

namespace {

at::Tensor upsampleBytes(const at::Tensor &self, at::IntArrayRef outputSize,
                         bool alignCorners, std::optional<double> scalesH,
                         std::optional<double> scalesW, bool isCubic) {
  if (isCubic)
    return at::upsample_bicubic2d(self, outputSize, alignCorners, scalesH,
                                  scalesW);
  return at::upsample_bilinear2d(self, outputSize, alignCorners, scalesH,
                                 scalesW);
}

TORCH_LIBRARY_FRAGMENT(torch_ltc, library) {
  library.def("upsample_bytes(Tensor self, int[2] output_size, bool "
              "align_corners, float? scales_h, float? scales_w, bool is_cubic) "
              "-> Tensor");
  library.impl("upsample_bytes",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                               TORCH_FN(upsampleBytes)));
}

} // namespace
