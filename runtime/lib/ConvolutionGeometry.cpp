//===- ConvolutionGeometry.cpp - Sizes of a convolution -------------------===//

#include "ConvolutionGeometry.h"

#include "DataType.h"
#include "Diagnostics.h"
#include "ExecutableVerifier.h"

#include <algorithm>

using namespace torch_ltc::runtime;

namespace {

/// All sizes must be below this limit, so that the products of two sizes below
/// fit in 63 bits.
constexpr int64_t kLargestSize = int64_t(1) << 31;

using Sizes = google::protobuf::RepeatedField<int64_t>;

llvm::Error checkRange(const Sizes &values, int64_t smallest,
                       const char *what) {
  for (int64_t value : values)
    if (value < smallest || value >= kLargestSize)
      return failure("{0} {1} is out of range", what, value);
  return llvm::Error::success();
}

llvm::Error checkShapes(const ConvolutionCall &call) {
  int rank = call.input_sizes_size() - 2;
  if (rank < 1 || rank > 3)
    return failure("a convolution's input has {0} dimensions, not 3 to 5",
                   rank + 2);
  if (call.weight_sizes_size() != rank + 2 ||
      call.output_sizes_size() != rank + 2 || call.stride_size() != rank ||
      call.padding_size() != rank || call.dilation_size() != rank)
    return failure("a convolution's sizes differ in rank");
  for (auto [values, smallest, what] :
       {std::tuple(&call.input_sizes(), 0, "input size"),
        std::tuple(&call.weight_sizes(), 0, "weight size"),
        std::tuple(&call.output_sizes(), 0, "output size"),
        std::tuple(&call.stride(), 1, "stride"),
        std::tuple(&call.padding(), 0, "padding"),
        std::tuple(&call.dilation(), 1, "dilation")})
    if (llvm::Error error = checkRange(*values, smallest, what))
      return error;
  for (const Sizes *sizes :
       {&call.input_sizes(), &call.weight_sizes(), &call.output_sizes()})
    if (!checkedProduct(*sizes, 8))
      return failure("a convolution's tensor has more than 2^63 bytes");
  return llvm::Error::success();
}

llvm::Error checkChannels(const ConvolutionCall &call) {
  int64_t groups = call.groups();
  if (groups < 1 || call.input_sizes(1) % groups ||
      call.weight_sizes(0) % groups)
    return failure("{0} groups don't divide {1} input and {2} output channels",
                   groups, call.input_sizes(1), call.weight_sizes(0));
  if (call.weight_sizes(1) != call.input_sizes(1) / groups)
    return failure("the weight has {0} input channels, not {1}",
                   call.weight_sizes(1), call.input_sizes(1) / groups);
  if (call.output_sizes(0) != call.input_sizes(0) ||
      call.output_sizes(1) != call.weight_sizes(0))
    return failure("the output is [{0}, {1}, ...], not [{2}, {3}, ...]",
                   call.output_sizes(0), call.output_sizes(1),
                   call.input_sizes(0), call.weight_sizes(0));
  return llvm::Error::success();
}

} // namespace

llvm::Expected<ConvolutionGeometry>
torch_ltc::runtime::convolutionGeometry(const ConvolutionCall &call) {
  if (llvm::Error error = checkShapes(call))
    return error;
  if (llvm::Error error = checkChannels(call))
    return error;
  ConvolutionGeometry geometry;
  int rank = geometry.spatialRank = call.input_sizes_size() - 2;
  geometry.batch = call.input_sizes(0);
  geometry.inputChannels = call.input_sizes(1);
  geometry.outputChannels = call.weight_sizes(0);
  geometry.groups = call.groups();
  for (int i = 0; i < rank; ++i) {
    int d = 3 - rank + i;
    geometry.input[d] = call.input_sizes(2 + i);
    geometry.kernel[d] = call.weight_sizes(2 + i);
    geometry.output[d] = call.output_sizes(2 + i);
    geometry.stride[d] = call.stride(i);
    geometry.padding[d] = call.padding(i);
    geometry.dilation[d] = call.dilation(i);
    if (geometry.kernel[d] < 1)
      return failure("the weight has an empty window");
    int64_t window = geometry.dilation[d] * (geometry.kernel[d] - 1) + 1;
    int64_t padded = geometry.input[d] + 2 * geometry.padding[d];
    int64_t most =
        padded < window ? 0 : (padded - window) / geometry.stride[d] + 1;
    // Maximum number of windows that the output padding of a transposed
    // convolution adds. The padding must be smaller than the larger of stride
    // and dilation.
    int64_t leftOver =
        (std::max(geometry.stride[d], geometry.dilation[d]) - 1) /
        geometry.stride[d];
    int64_t least = std::max(most - leftOver, std::min<int64_t>(most, 1));
    if (geometry.output[d] > most || geometry.output[d] < least)
      return failure("spatial dimension {0} of the output has size {1}, not "
                     "{2}",
                     i, geometry.output[d], most);
  }
  return geometry;
}
