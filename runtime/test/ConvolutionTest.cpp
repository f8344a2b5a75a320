//===- ConvolutionTest.cpp - Convolutions against naive loops -------------===//

#include "ConvolutionGeometry.h"
#include "LoopKernels.h"
#include "ProgramBuilder.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace torch_ltc::runtime;
using namespace torch_ltc::runtime::test;

namespace {

struct Case {
  DType dtype = FLOAT32;
  int64_t batch = 2, inputs = 4, outputs = 6, groups = 1;
  std::vector<int64_t> size, window, stride, padding, dilation;
  bool bias = false;
  int threads = 2;

  int rank() const { return int(size.size()); }
  int64_t outputSize(int d) const {
    return (size[d] + 2 * padding[d] - dilation[d] * (window[d] - 1) - 1) /
               stride[d] +
           1;
  }
};

std::vector<int64_t> concat(std::vector<int64_t> head,
                            const std::vector<int64_t> &tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

struct Operands {
  Operands(const Case &c, std::mt19937 &generator) {
    std::vector<int64_t> spatial;
    for (int d = 0; d < c.rank(); ++d)
      spatial.push_back(c.outputSize(d));
    input = HostTensor(c.dtype, concat({c.batch, c.inputs}, c.size));
    weight =
        HostTensor(c.dtype, concat({c.outputs, c.inputs / c.groups}, c.window));
    output = HostTensor(c.dtype, concat({c.batch, c.outputs}, spatial));
    bias = HostTensor(c.dtype, {c.outputs});
    for (HostTensor *tensor : {&input, &weight, &output, &bias})
      tensor->fillRandom(generator, 2);
  }
  HostTensor input, weight, output, bias;
};

/// Calls visit(input, weight, output) for each product of the convolution, with
/// the flat indices of its two factors and of the sum that it is added to.
template <typename Visit>
void forEachProduct(const Case &c, const Operands &operands,
                    const Visit &visit) {
  auto padded = [&](const std::vector<int64_t> &values, int64_t fill) {
    std::vector<int64_t> result(3 - values.size(), fill);
    result.insert(result.end(), values.begin(), values.end());
    return result;
  };
  auto in = padded(c.size, 1), window = padded(c.window, 1);
  auto stride = padded(c.stride, 1), dilation = padded(c.dilation, 1);
  auto padding = padded(c.padding, 0);
  auto out = padded(
      {operands.output.sizes.begin() + 2, operands.output.sizes.end()}, 1);
  int64_t groupInputs = c.inputs / c.groups;
  int64_t groupOutputs = c.outputs / c.groups;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t o = 0; o < c.outputs; ++o)
      for (int64_t g = 0; g < groupInputs; ++g)
        for (int64_t od = 0; od < out[0]; ++od)
          for (int64_t oh = 0; oh < out[1]; ++oh)
            for (int64_t ow = 0; ow < out[2]; ++ow)
              for (int64_t kd = 0; kd < window[0]; ++kd)
                for (int64_t kh = 0; kh < window[1]; ++kh)
                  for (int64_t kw = 0; kw < window[2]; ++kw) {
                    int64_t id = od * stride[0] + kd * dilation[0] - padding[0];
                    int64_t ih = oh * stride[1] + kh * dilation[1] - padding[1];
                    int64_t iw = ow * stride[2] + kw * dilation[2] - padding[2];
                    if (id < 0 || id >= in[0] || ih < 0 || ih >= in[1] ||
                        iw < 0 || iw >= in[2])
                      continue;
                    int64_t channel = o / groupOutputs * groupInputs + g;
                    int64_t input =
                        (((n * c.inputs + channel) * in[0] + id) * in[1] + ih) *
                            in[2] +
                        iw;
                    int64_t weight =
                        (((o * groupInputs + g) * window[0] + kd) * window[1] +
                         kh) *
                            window[2] +
                        kw;
                    int64_t output =
                        (((n * c.outputs + o) * out[0] + od) * out[1] + oh) *
                            out[2] +
                        ow;
                    visit(input, weight, output);
                  }
}

void expectEqual(const HostTensor &actual, const std::vector<double> &expected,
                 const char *what) {
  double tolerance = actual.dtype == BFLOAT16  ? 1.0 / 256
                     : actual.dtype == FLOAT16 ? 1.0 / 2048
                                               : 0;
  HostTensor stored(actual.dtype, actual.sizes);
  for (size_t i = 0; i < expected.size(); ++i) {
    stored.set(i, expected[i]);
    double reference = tolerance ? expected[i] : stored.get(i);
    ASSERT_LE(std::abs(actual.get(i) - reference),
              tolerance * std::abs(reference))
        << what << ", element " << i << ": " << actual.get(i) << ", expected "
        << reference;
  }
}

/// The program of one convolution: written operands are outputs, the others are
/// parameters in the order input, weight, output, bias.
struct Run {
  Run(const Case &c, ConvolutionCall::Kind kind, Operands &operands) {
    ConvolutionCall *call = builder.convolution();
    call->set_kind(kind);
    call->set_dtype(c.dtype);
    for (int64_t size : operands.input.sizes)
      call->add_input_sizes(size);
    for (int64_t size : operands.weight.sizes)
      call->add_weight_sizes(size);
    for (int64_t size : operands.output.sizes)
      call->add_output_sizes(size);
    for (int d = 0; d < c.rank(); ++d) {
      call->add_stride(c.stride[d]);
      call->add_padding(c.padding[d]);
      call->add_dilation(c.dilation[d]);
    }
    call->set_groups(c.groups);
    add(operands.input, call->mutable_input(),
        kind == ConvolutionCall::BACKWARD_INPUT);
    add(operands.weight, call->mutable_weight(),
        kind == ConvolutionCall::BACKWARD_WEIGHT);
    add(operands.output, call->mutable_output(),
        kind == ConvolutionCall::FORWARD);
    if (c.bias && kind != ConvolutionCall::BACKWARD_INPUT)
      add(operands.bias, call->mutable_bias(),
          kind == ConvolutionCall::BACKWARD_WEIGHT);
  }

  void add(HostTensor &tensor, BufferRef *ref, bool written) {
    setRef(ref, written ? builder.output(tensor) : builder.parameter(tensor));
    (written ? outputs : parameters).push_back(tensor.bytes.data());
  }

  void operator()(int threads) {
    Program program(builder.message);
    poisonArenas();
    ASSERT_EQ(program.run(parameters, outputs, threads), "");
  }

  ProgramBuilder builder;
  std::vector<void *> parameters, outputs;
};

std::string textOf(const Case &c) {
  std::string text =
      "dtype " + std::to_string(c.dtype) + " [" + std::to_string(c.batch) +
      ", " + std::to_string(c.inputs) + "] -> " + std::to_string(c.outputs) +
      " groups " + std::to_string(c.groups) + " bias " + std::to_string(c.bias);
  for (int d = 0; d < c.rank(); ++d)
    text += " (size " + std::to_string(c.size[d]) + " window " +
            std::to_string(c.window[d]) + " stride " +
            std::to_string(c.stride[d]) + " padding " +
            std::to_string(c.padding[d]) + " dilation " +
            std::to_string(c.dilation[d]) + ")";
  return text;
}

void check(const Case &c) {
  SCOPED_TRACE(textOf(c));
  std::mt19937 generator(5);
  const Operands start(c, generator);
  std::vector<double> output(start.output.numElements());
  std::vector<double> input(start.input.numElements());
  std::vector<double> weight(start.weight.numElements());
  std::vector<double> bias(c.outputs);
  int64_t plane = c.batch && c.outputs
                      ? start.output.numElements() / c.batch / c.outputs
                      : 0;
  for (size_t i = 0; i < output.size(); ++i) {
    int64_t channel = int64_t(i) / plane % c.outputs;
    output[i] = c.bias ? start.bias.get(channel) : 0;
    bias[channel] += start.output.get(i);
  }
  forEachProduct(c, start, [&](int64_t i, int64_t w, int64_t o) {
    output[o] += start.input.get(i) * start.weight.get(w);
    input[i] += start.output.get(o) * start.weight.get(w);
    weight[w] += start.output.get(o) * start.input.get(i);
  });

  Operands forward = start, backwardInput = start, backwardWeight = start;
  Run(c, ConvolutionCall::FORWARD, forward)(c.threads);
  expectEqual(forward.output, output, "output");
  Run(c, ConvolutionCall::BACKWARD_INPUT, backwardInput)(c.threads);
  expectEqual(backwardInput.input, input, "input's gradient");
  Run(c, ConvolutionCall::BACKWARD_WEIGHT, backwardWeight)(c.threads);
  expectEqual(backwardWeight.weight, weight, "weight's gradient");
  if (c.bias)
    expectEqual(backwardWeight.bias, bias, "bias's gradient");
}

Case simple(int rank, int64_t size, int64_t window) {
  Case c;
  c.size.assign(rank, size);
  c.window.assign(rank, window);
  c.stride.assign(rank, 1);
  c.padding.assign(rank, 0);
  c.dilation.assign(rank, 1);
  return c;
}

/// Runs a convolution with `parameter_contents`. The ids are correct except
/// once: the weight changes but its id doesn't, so the cached copy must be
/// used.
void checkPackedWeight(ConvolutionCall::Kind kind) {
  Case c = simple(2, 4, 3);
  c.dtype = FLOAT32;
  c.inputs = 64, c.outputs = 48;
  std::mt19937 generator(5);
  Operands operands(c, generator);
  Run run(c, kind, operands);
  bool isForward = kind == ConvolutionCall::FORWARD;
  HostTensor &result = isForward ? operands.output : operands.input;
  std::vector<char> &weight = operands.weight.bytes;
  size_t before = ltcPackedWeightBytes();
  {
    Program program(run.builder.message);
    auto runWith = [&](uint64_t ofWeight) {
      std::fill(result.bytes.begin(), result.bytes.end(), -1);
      // Parameters: input and weight, or weight and output.
      uint64_t contents[] = {isForward ? 0 : ofWeight,
                             isForward ? ofWeight : 0};
      poisonArenas();
      EXPECT_EQ(
          program.run(run.parameters, run.outputs, 2, {}, nullptr, contents),
          "");
      return result.bytes;
    };
    const std::vector<char> expected = runWith(0), zeros(expected.size());
    EXPECT_EQ(runWith(0), expected);
    EXPECT_EQ(runWith(7), expected);
    EXPECT_EQ(ltcPackedWeightBytes(), before) << "contents that were seen once";
    EXPECT_EQ(runWith(7), expected);
    if (ltcPackedWeightBytes() == before)
      GTEST_SKIP() << "oneDNN doesn't reorder weights on this CPU";
    std::fill(weight.begin(), weight.end(), 0);
    EXPECT_EQ(runWith(7), expected) << "the cached copy is used";
    EXPECT_EQ(runWith(8), zeros);
    EXPECT_EQ(ltcPackedWeightBytes(), before) << "the old copy has been freed";
    EXPECT_EQ(runWith(8), zeros);
    EXPECT_EQ(runWith(8), zeros);
    EXPECT_GT(ltcPackedWeightBytes(), before);
    std::fill(weight.begin(), weight.end(), 1);
    EXPECT_NE(runWith(0), zeros) << "unknown contents are read again";
    runWith(9);
    runWith(9);
    EXPECT_GT(ltcPackedWeightBytes(), before);
  }
  EXPECT_EQ(ltcPackedWeightBytes(), before) << "the executable was destroyed";
}

const DType kDTypes[] = {UINT8,   INT8,     INT16,   INT32,  INT64,
                         FLOAT16, BFLOAT16, FLOAT32, FLOAT64};

} // namespace

TEST(Convolution, DTypes) {
  for (DType dtype : kDTypes)
    for (bool bias : {false, true}) {
      Case c = simple(2, 7, 3);
      c.dtype = dtype;
      c.bias = bias;
      c.padding = {1, 1};
      check(c);
    }
}

TEST(Convolution, RanksStridesPaddingDilation) {
  for (DType dtype : {FLOAT32, FLOAT64})
    for (int rank : {1, 2, 3})
      for (int64_t stride : {1, 2, 3})
        for (int64_t padding : {0, 2})
          for (int64_t dilation : {1, 2}) {
            Case c = simple(rank, 9, 3);
            c.dtype = dtype;
            c.stride.assign(rank, stride);
            c.padding.assign(rank, padding);
            c.dilation.assign(rank, dilation);
            check(c);
          }
}

TEST(Convolution, DimensionsDiffer) {
  for (DType dtype : {BFLOAT16, FLOAT32, FLOAT64}) {
    Case c = simple(3, 1, 1);
    c.dtype = dtype;
    c.size = {5, 8, 11};
    c.window = {1, 3, 2};
    c.stride = {1, 2, 3};
    c.padding = {0, 1, 1};
    c.dilation = {1, 1, 2};
    c.bias = true;
    check(c);
  }
}

TEST(Convolution, Groups) {
  for (DType dtype : {FLOAT32, FLOAT64, BFLOAT16})
    for (int64_t groups : {2, 4, 16}) {
      Case c = simple(2, 8, 3);
      c.dtype = dtype;
      c.inputs = c.outputs = 16;
      c.groups = groups;
      c.padding = {1, 1};
      c.bias = true;
      check(c);
      c.outputs = 32; // 16 groups: depthwise with a multiplier
      c.stride = {2, 2};
      check(c);
    }
}

TEST(Convolution, ModelShapes) {
  // Typical of LeNet and ResNet: one channel, 1x1 with stride, many channels.
  for (DType dtype : {FLOAT32, FLOAT64}) {
    Case c = simple(2, 14, 5);
    c.dtype = dtype;
    c.inputs = 1;
    c.padding = {2, 2};
    c.bias = true;
    check(c);
    c = simple(2, 8, 1);
    c.dtype = dtype;
    c.inputs = 32, c.outputs = 64;
    c.stride = {2, 2};
    check(c);
    c = simple(2, 4, 3);
    c.dtype = dtype;
    c.inputs = 64, c.outputs = 48;
    c.padding = {1, 1};
    for (int threads : {1, 2, 4}) {
      c.threads = threads;
      check(c);
    }
  }
}

TEST(Convolution, InputThatNoWindowReads) {
  // With stride 4, the elements between the windows aren't read; their gradient
  // is zero.
  for (DType dtype : {FLOAT32, FLOAT64, INT32}) {
    Case c = simple(2, 10, 2);
    c.dtype = dtype;
    c.stride = {4, 4};
    check(c);
  }
}

TEST(Convolution, EmptyBatch) {
  for (DType dtype : {FLOAT32, FLOAT64}) {
    Case c = simple(2, 6, 3);
    c.dtype = dtype;
    c.batch = 0;
    c.bias = true;
    check(c);
  }
}

TEST(Convolution, WeightsThatStayAreKept) {
  checkPackedWeight(ConvolutionCall::FORWARD);
  checkPackedWeight(ConvolutionCall::BACKWARD_INPUT);
}

TEST(Convolution, EveryInstructionSet) {
  std::vector<const LoopKernels *(*)(int)> tables = {baseline::loopKernels};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    tables.push_back(avx2::loopKernels);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
    tables.push_back(avx512::loopKernels);
#endif
  ConvolutionGeometry g;
  g.batch = 2, g.inputChannels = 3, g.outputChannels = 2;
  g.input[2] = 40, g.kernel[2] = 3, g.output[2] = 38;
  Case c = simple(1, 40, 3);
  c.inputs = 3, c.outputs = 2;
  std::vector<char> memory(kBlockScratchBytes + 64);
  char *scratch = memory.data() + 64 - uintptr_t(memory.data()) % 64;
  for (auto table : tables)
    for (DType dtype : kDTypes) {
      c.dtype = dtype;
      std::mt19937 generator(2);
      Operands operands(c, generator);
      std::vector<double> expected(operands.output.numElements());
      forEachProduct(c, operands, [&](int64_t i, int64_t w, int64_t o) {
        expected[o] += operands.input.get(i) * operands.weight.get(w);
      });
      ConvolutionArguments arguments = {&g,
                                        ConvolutionKind::Forward,
                                        operands.input.bytes.data(),
                                        operands.weight.bytes.data(),
                                        operands.output.bytes.data(),
                                        nullptr};
      table(dtype)->convolution(arguments, 0, {0, 2, 0, 76}, scratch);
      expectEqual(operands.output, expected, "output");
    }
}
