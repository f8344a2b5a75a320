//===- library_calls.cpp - Executables of one library call ----------------===//
//
// Writes to stdout the serialized executable of one matrix product or
// convolution, whose time library_calls.py compares with PyTorch's. Usage:
//
//   library-calls matmul DTYPE BATCH M N K TRANSPOSE_A TRANSPOSE_B
//   library-calls KIND DTYPE N C H W O K STRIDE PADDING GROUPS BIAS
//
// KIND is forward, backward_input or backward_weight; DTYPE is float32,
// bfloat16 or float64; the other arguments are integers with PyTorch's meaning.
//
//===----------------------------------------------------------------------===//

#include "ExecutableBytes.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

using namespace torch_ltc::runtime;

namespace {

using Sizes = std::vector<int64_t>;

class CallBuilder {
public:
  CallBuilder(DType dtype, std::string name) : dtype(dtype) {
    message.set_format_version(FORMAT_VERSION);
    message.set_name(std::move(name));
  }

  /// Adds an output if the call writes the tensor (`written`), else a
  /// parameter. `ref` becomes a reference to the tensor's buffer.
  void operand(const Sizes &sizes, bool written, BufferRef *ref) {
    uint64_t bytes = dtype == FLOAT64 ? 8 : dtype == BFLOAT16 ? 2 : 4;
    TensorType *type = written ? message.add_outputs()->mutable_type()
                               : message.add_parameters()->mutable_type();
    type->set_dtype(dtype);
    for (int64_t size : sizes) {
      type->add_sizes(size);
      bytes *= size;
    }
    Buffer *buffer = message.add_buffers();
    if (written)
      buffer->set_output(message.outputs_size() - 1);
    else
      buffer->set_parameter(message.parameters_size() - 1);
    buffer->set_bytes(bytes);
    ref->set_buffer(message.buffers_size() - 1);
  }

  Executable message;
  DType dtype;
};

void addMatmul(CallBuilder &builder, const Sizes &values) {
  MatmulCall *call = builder.message.add_commands()->mutable_matmul();
  int64_t batch = values[0], m = values[1], n = values[2], k = values[3];
  call->set_dtype(builder.dtype);
  call->set_batch(batch);
  call->set_m(m);
  call->set_n(n);
  call->set_k(k);
  call->set_transpose_a(values[4]);
  call->set_transpose_b(values[5]);
  call->set_batch_stride_a(m * k);
  call->set_batch_stride_b(k * n);
  builder.operand({batch, m, k}, false, call->mutable_a());
  builder.operand({batch, k, n}, false, call->mutable_b());
  builder.operand({batch, m, n}, true, call->mutable_c());
}

void addConvolution(CallBuilder &builder, ConvolutionCall::Kind kind,
                    const Sizes &values) {
  ConvolutionCall *call = builder.message.add_commands()->mutable_convolution();
  int64_t n = values[0], c = values[1], h = values[2], w = values[3];
  int64_t o = values[4], k = values[5], stride = values[6], padding = values[7];
  int64_t groups = values[8];
  Sizes input = {n, c, h, w}, weight = {o, c / groups, k, k};
  Sizes output = {n, o, (h + 2 * padding - k) / stride + 1,
                  (w + 2 * padding - k) / stride + 1};
  call->set_kind(kind);
  call->set_dtype(builder.dtype);
  for (int64_t size : input)
    call->add_input_sizes(size);
  for (int64_t size : weight)
    call->add_weight_sizes(size);
  for (int64_t size : output)
    call->add_output_sizes(size);
  for (int d = 0; d < 2; ++d) {
    call->add_stride(stride);
    call->add_padding(padding);
    call->add_dilation(1);
  }
  call->set_groups(groups);
  builder.operand(input, kind == ConvolutionCall::BACKWARD_INPUT,
                  call->mutable_input());
  builder.operand(weight, kind == ConvolutionCall::BACKWARD_WEIGHT,
                  call->mutable_weight());
  builder.operand(output, kind == ConvolutionCall::FORWARD,
                  call->mutable_output());
  if (values[9] && kind != ConvolutionCall::BACKWARD_INPUT)
    builder.operand({o}, kind == ConvolutionCall::BACKWARD_WEIGHT,
                    call->mutable_bias());
}

int usage() {
  std::fprintf(stderr,
               "usage: library-calls matmul DTYPE BATCH M N K TA TB\n"
               "       library-calls forward|backward_input|backward_weight "
               "DTYPE N C H W O K STRIDE PADDING GROUPS BIAS\n");
  return 2;
}

} // namespace

int main(int argc, char **argv) {
  const std::map<std::string, DType> dtypes = {
      {"float32", FLOAT32}, {"bfloat16", BFLOAT16}, {"float64", FLOAT64}};
  const std::map<std::string, ConvolutionCall::Kind> kinds = {
      {"forward", ConvolutionCall::FORWARD},
      {"backward_input", ConvolutionCall::BACKWARD_INPUT},
      {"backward_weight", ConvolutionCall::BACKWARD_WEIGHT}};
  if (argc < 3 || !dtypes.count(argv[2]))
    return usage();
  std::string kind = argv[1];
  Sizes values;
  for (int i = 3; i < argc; ++i)
    values.push_back(std::atoll(argv[i]));
  CallBuilder builder(dtypes.at(argv[2]), kind);
  if (kind == "matmul" && values.size() == 6)
    addMatmul(builder, values);
  else if (kinds.count(kind) && values.size() == 10)
    addConvolution(builder, kinds.at(kind), values);
  else
    return usage();
  std::string bytes = serializeExecutable(builder.message);
  return std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size();
}
