//===- convolution_strides.cpp - Strides of convolutions ------------------===//

#include "shape/rules/convolution_strides.h"

#include <ATen/native/ConvUtils.h>

using namespace torch_ltc;

namespace {

/// A CPU tensor of these sizes and strides, which must not be read: it has no
/// memory.
at::Tensor standIn(const at::Tensor &tensor, SizesRef sizes, SizesRef strides) {
  static char nothing;
  return at::for_blob(&nothing, sizes)
      .strides(strides)
      .options(at::TensorOptions().dtype(tensor.scalar_type()))
      .make_tensor();
}

/// Inserts `number` before the last element, which makes the numbers of one dim
/// those of two dims.
Sizes insertBeforeLast(SizesRef numbers, int64_t number) {
  Sizes longer(numbers);
  longer.insert(longer.end() - 1, number);
  return longer;
}

/// The operands and numbers with which eager calls a library. It computes a
/// convolution over one dim as one over two dims, of which the first has size
/// 1, and makes the input row-major before.
struct Call {
  explicit Call(const Arguments &named)
      : input(named.tensor(*named.find("input"))),
        weight(named.tensor(*named.find("weight"))) {
    size_t count = size_t(input.dim()) - 2;
    for (auto [numbers, name] :
         std::initializer_list<std::pair<Sizes &, const char *>>{
             {stride, "stride"},
             {padding, "padding"},
             {dilation, "dilation"},
             {outputPadding, "output_padding"}})
      numbers = named.integers(*named.find(name), count);
    isOneDim = count == 1;
    if (!isOneDim) {
      input = standIn(input, input.sizes(), input.strides());
      weight = standIn(weight, weight.sizes(), weight.strides());
      return;
    }
    Sizes sizes = insertBeforeLast(input.sizes(), 1);
    input = standIn(input, sizes, torch_ltc::packedStrides(sizes));
    sizes = insertBeforeLast(weight.sizes(), 1);
    weight = standIn(
        weight, sizes,
        insertBeforeLast(weight.strides(), weight.size(2) * weight.stride(2)));
    for (Sizes *numbers : {&stride, &dilation})
      *numbers = insertBeforeLast(*numbers, 1);
    for (Sizes *numbers : {&padding, &outputPadding})
      *numbers = insertBeforeLast(*numbers, 0);
  }

  at::MemoryFormat format(bool isTransposed, int64_t groups) const {
    auto symbols = [](const Sizes &numbers) {
      return c10::fromIntArrayRefSlow(numbers);
    };
    at::native::ConvBackend backend = at::native::select_conv_backend(
        input, weight, /*bias_opt=*/std::nullopt, symbols(stride),
        symbols(padding), symbols(dilation), isTransposed,
        symbols(outputPadding), groups, /*bias_sizes_opt=*/std::nullopt);
    return at::native::_determine_backend_memory_format(input, weight, backend);
  }

  at::Tensor input, weight;
  Sizes stride, padding, dilation, outputPadding;
  bool isOneDim;
};

} // namespace

Strides torch_ltc::convolutionStrides(const Arguments &named,
                                      SizesRef resultSizes) {
  if (resultSizes.size() < 3) // the gradient of the bias
    return packedStrides(resultSizes);
  Call call(named);
  at::MemoryFormat format = call.format(named.flag("transposed"),
                                        named.integer(*named.find("groups")));
  if (!call.isOneDim)
    return packedStrides(resultSizes, format);
  Strides strides = packedStrides(insertBeforeLast(resultSizes, 1), format);
  strides.erase(strides.end() - 2);
  return strides;
}
