//===- AttentionTest.cpp - Attention against its formula ------------------===//

#include "LoopKernels.h"
#include "ProgramBuilder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace torch_ltc::runtime;
using namespace torch_ltc::runtime::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Case {
  int64_t batch = 1, heads = 1, length = 1, keys = 1, width = 1, outputs = 1;
  bool causal = false;
  /// Sizes of the mask; empty if there is none.
  std::vector<int64_t> mask = {};
  int threads = 2;

  std::string text() const {
    std::string text;
    for (int64_t size : {batch, heads, length, keys, width, outputs})
      text += std::to_string(size) + " ";
    return text + (causal ? "causal " : "") + std::to_string(mask.size()) +
           " threads " + std::to_string(threads);
  }
};

struct Tensors {
  explicit Tensors(const Case &c)
      : query(FLOAT32, {c.batch, c.heads, c.length, c.width}),
        key(FLOAT32, {c.batch, c.heads, c.keys, c.width}),
        value(FLOAT32, {c.batch, c.heads, c.keys, c.outputs}),
        output(FLOAT32, {c.batch, c.heads, c.length, c.outputs}),
        logSum(FLOAT32, {c.batch, c.heads, c.length}),
        gradOutput(FLOAT32, output.sizes), gradQuery(FLOAT32, query.sizes),
        gradKey(FLOAT32, key.sizes), gradValue(FLOAT32, value.sizes),
        mask(FLOAT32, c.mask.empty() ? std::vector<int64_t>{1} : c.mask) {
    std::mt19937 generator(3);
    std::normal_distribution<double> normal;
    for (HostTensor *tensor : {&query, &key, &value, &gradOutput, &mask})
      for (int64_t i = 0; i < tensor->numElements(); ++i)
        tensor->set(i, normal(generator));
    for (int64_t i = 0; i < mask.numElements(); i += 3)
      mask.set(i, -kInfinity);
  }

  HostTensor query, key, value, output, logSum;
  HostTensor gradOutput, gradQuery, gradKey, gradValue, mask;
};

/// Expected values, in the order of the command's results.
struct Expected {
  std::vector<double> output, logSum, gradQuery, gradKey, gradValue;
};

double maskOf(const Case &c, const Tensors &t, int64_t b, int64_t h, int64_t i,
              int64_t j) {
  if (c.causal && j > i)
    return -kInfinity;
  if (c.mask.empty())
    return 0;
  auto at = [&](int dim, int64_t place) {
    return c.mask[dim] == 1 ? 0 : place;
  };
  return t.mask.get(
      ((at(0, b) * c.mask[1] + at(1, h)) * c.mask[2] + at(2, i)) * c.keys + j);
}

Expected expectedOf(const Case &c, const Tensors &t) {
  Expected e;
  e.output.resize(t.output.numElements());
  e.logSum.resize(t.logSum.numElements());
  e.gradQuery.resize(t.query.numElements());
  e.gradKey.resize(t.key.numElements());
  e.gradValue.resize(t.value.numElements());
  for (int64_t head = 0; head < c.batch * c.heads; ++head)
    for (int64_t i = 0; i < c.length; ++i) {
      int64_t q = (head * c.length + i) * c.width;
      int64_t o = (head * c.length + i) * c.outputs;
      std::vector<double> weights(c.keys);
      double sum = 0;
      for (int64_t j = 0; j < c.keys; ++j) {
        double score = maskOf(c, t, head / c.heads, head % c.heads, i, j);
        for (int64_t d = 0; d < c.width; ++d)
          score +=
              t.query.get(q + d) * t.key.get((head * c.keys + j) * c.width + d);
        weights[j] = std::exp(score);
        sum += weights[j];
      }
      e.logSum[head * c.length + i] = sum ? std::log(sum) : kInfinity;
      double delta = 0;
      std::vector<double> gradWeights(c.keys);
      for (int64_t j = 0; j < c.keys; ++j) {
        weights[j] = sum ? weights[j] / sum : 0;
        for (int64_t d = 0; d < c.outputs; ++d) {
          int64_t v = (head * c.keys + j) * c.outputs + d;
          double grad = t.gradOutput.get(o + d);
          e.output[o + d] += weights[j] * t.value.get(v);
          gradWeights[j] += grad * t.value.get(v);
          e.gradValue[v] += weights[j] * grad;
        }
        delta += weights[j] * gradWeights[j];
      }
      for (int64_t j = 0; j < c.keys; ++j)
        for (int64_t d = 0; d < c.width; ++d) {
          int64_t k = (head * c.keys + j) * c.width + d;
          double grad = weights[j] * (gradWeights[j] - delta);
          e.gradQuery[q + d] += grad * t.key.get(k);
          e.gradKey[k] += grad * t.query.get(q + d);
        }
    }
  return e;
}

AttentionCall *callOf(const Case &c, ProgramBuilder &builder) {
  AttentionCall *call = builder.message.add_commands()->mutable_attention();
  call->set_causal(c.causal);
  call->set_batch(c.batch);
  call->set_heads(c.heads);
  call->set_length(c.length);
  call->set_keys(c.keys);
  call->set_width(c.width);
  call->set_value_width(c.outputs);
  if (!c.mask.empty()) {
    int64_t matrix = c.mask[2] * c.mask[3];
    call->set_mask_batch_stride(c.mask[0] == 1 ? 0 : c.mask[1] * matrix);
    call->set_mask_head_stride(c.mask[1] == 1 ? 0 : matrix);
    call->set_mask_row_stride(c.mask[2] == 1 ? 0 : c.keys);
  }
  return call;
}

/// A program with a forward call and a backward call that reads the outputs of
/// the forward call.
Executable programOf(const Case &c, const Tensors &t) {
  ProgramBuilder builder;
  uint32_t query = builder.parameter(t.query), key = builder.parameter(t.key);
  uint32_t value = builder.parameter(t.value);
  uint32_t gradOutput = builder.parameter(t.gradOutput);
  uint32_t mask = c.mask.empty() ? 0 : builder.parameter(t.mask);
  uint32_t output = builder.output(t.output);
  uint32_t logSum = builder.output(t.logSum);
  uint32_t gradQuery = builder.output(t.gradQuery);
  uint32_t gradKey = builder.output(t.gradKey);
  uint32_t gradValue = builder.output(t.gradValue);
  for (bool backward : {false, true}) {
    AttentionCall *call = callOf(c, builder);
    call->set_backward(backward);
    setRef(call->mutable_query(), query);
    setRef(call->mutable_key(), key);
    setRef(call->mutable_value(), value);
    if (!c.mask.empty())
      setRef(call->mutable_mask(), mask);
    setRef(call->mutable_output(), output);
    setRef(call->mutable_log_sum(), logSum);
    if (!backward)
      continue;
    setRef(call->mutable_grad_output(), gradOutput);
    setRef(call->mutable_grad_query(), gradQuery);
    setRef(call->mutable_grad_key(), gradKey);
    setRef(call->mutable_grad_value(), gradValue);
  }
  return builder.message;
}

void run(const Case &c, Tensors &t) {
  Program program(programOf(c, t));
  std::vector<void *> parameters = {t.query.bytes.data(), t.key.bytes.data(),
                                    t.value.bytes.data(),
                                    t.gradOutput.bytes.data()};
  if (!c.mask.empty())
    parameters.push_back(t.mask.bytes.data());
  poisonArenas();
  ASSERT_EQ(program.run(parameters,
                        {t.output.bytes.data(), t.logSum.bytes.data(),
                         t.gradQuery.bytes.data(), t.gradKey.bytes.data(),
                         t.gradValue.bytes.data()},
                        c.threads),
            "");
}

void expectClose(const HostTensor &actual, const std::vector<double> &expected,
                 const char *name) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == actual.get(i))
      continue; // infinities
    ASSERT_NEAR(actual.get(i), expected[i], 2e-5 * (1 + std::abs(expected[i])))
        << name << " " << i;
  }
}

void check(const Case &c) {
  SCOPED_TRACE(c.text());
  Tensors t(c);
  Expected expected = expectedOf(c, t);
  run(c, t);
  expectClose(t.output, expected.output, "output");
  expectClose(t.logSum, expected.logSum, "logSum");
  expectClose(t.gradQuery, expected.gradQuery, "gradQuery");
  expectClose(t.gradKey, expected.gradKey, "gradKey");
  expectClose(t.gradValue, expected.gradValue, "gradValue");
}

} // namespace

TEST(Attention, Sizes) {
  check({1, 1, 1, 1, 1, 1});
  check({2, 3, 32, 64, 32, 32});
  check({1, 2, 33, 65, 17, 9});
  check({1, 1, 70, 5, 8, 40});
  check({1, 1, 300, 130, 16, 24});
}

TEST(Attention, Causal) {
  for (int64_t keys : {20, 70, 150})
    check({1, 2, 70, keys, 16, 16, true});
}

TEST(Attention, Masks) {
  for (int64_t batch : {1, 2})
    for (int64_t heads : {1, 3})
      for (int64_t rows : {1, 37})
        check({2, 3, 37, 70, 8, 8, false, {batch, heads, rows, 70}});
  check({2, 1, 37, 70, 8, 8, true, {1, 1, 37, 70}});
}

TEST(Attention, AQueryThatSeesNoKeyGivesZero) {
  Case c{1, 1, 3, 70, 4, 4, false, {1, 1, 3, 70}};
  Tensors t(c);
  for (int64_t j = 0; j < 70; ++j)
    t.mask.set(70 + j, -kInfinity);
  Expected expected = expectedOf(c, t);
  EXPECT_EQ(expected.output[4], 0);
  run(c, t);
  expectClose(t.output, expected.output, "output");
  expectClose(t.logSum, expected.logSum, "logSum");
  expectClose(t.gradQuery, expected.gradQuery, "gradQuery");
  expectClose(t.gradKey, expected.gradKey, "gradKey");
}

TEST(Attention, LargeScoresStayFinite) {
  Case c{1, 1, 40, 140, 4, 4};
  Tensors t(c);
  // Two keys in different blocks have by far the largest scores, so all other
  // weights vanish.
  for (int64_t i = 0; i < 40; ++i)
    for (int64_t d = 0; d < 4; ++d)
      t.query.set(i * 4 + d, 100);
  for (int64_t j : {10, 130})
    for (int64_t d = 0; d < 4; ++d)
      t.key.set(j * 4 + d, 50);
  run(c, t);
  for (int64_t d = 0; d < 4; ++d)
    EXPECT_FLOAT_EQ(t.output.get(d),
                    (t.value.get(40 + d) + t.value.get(520 + d)) / 2);
}

TEST(Attention, NotANumberStaysInItsRow) {
  Case c{1, 1, 40, 70, 4, 4};
  Tensors t(c);
  t.query.set(5 * 4, std::nan(""));
  run(c, t);
  EXPECT_TRUE(std::isnan(t.output.get(5 * 4)));
  EXPECT_TRUE(std::isfinite(t.output.get(4 * 4)));
  EXPECT_TRUE(std::isfinite(t.output.get(6 * 4)));
}

TEST(Attention, TheSameOnAnyNumberOfThreads) {
  Case c{2, 3, 300, 140, 24, 40, true};
  Tensors one(c), four(c);
  c.threads = 1;
  run(c, one);
  c.threads = 4;
  run(c, four);
  EXPECT_EQ(one.output.bytes, four.output.bytes);
  EXPECT_EQ(one.gradQuery.bytes, four.gradQuery.bytes);
  EXPECT_EQ(one.gradKey.bytes, four.gradKey.bytes);
  EXPECT_EQ(one.gradValue.bytes, four.gradValue.bytes);
}

/// The loops for each instruction set that this CPU supports compute the
/// formula's results; the other tests only run the loops for the best one.
TEST(Attention, InstructionSets) {
  std::vector<const AttentionKernels *> sets = {&baseline::kAttention};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    sets.push_back(&avx2::kAttention);
  if (&attentionKernels() == &avx512::kAttention)
    sets.push_back(&avx512::kAttention);
#endif
  Case c{1, 1, 70, 90, 20, 40, true, {1, 1, 70, 90}};
  for (const AttentionKernels *kernels : sets) {
    Tensors t(c);
    Expected expected = expectedOf(c, t);
    auto data = [](HostTensor &tensor) {
      return reinterpret_cast<float *>(tensor.bytes.data());
    };
    AttentionArguments g = {};
    g.query = data(t.query), g.key = data(t.key), g.value = data(t.value);
    g.output = data(t.output), g.logSum = data(t.logSum);
    g.gradOutput = data(t.gradOutput), g.gradQuery = data(t.gradQuery);
    g.gradKey = data(t.gradKey), g.gradValue = data(t.gradValue);
    g.length = c.length, g.keys = c.keys;
    g.width = c.width, g.valueWidth = c.outputs;
    g.isCausal = c.causal;
    g.mask = data(t.mask);
    g.maskRowStride = c.keys;
    std::vector<float> scratch(attentionScratchFloats(g), NAN);
    kernels->forward(g, 0, g.length, scratch.data());
    scratch.assign(attentionBackwardScratchFloats(g), NAN);
    kernels->backward(g, scratch.data());
    expectClose(t.output, expected.output, "output");
    expectClose(t.gradQuery, expected.gradQuery, "gradQuery");
    expectClose(t.gradKey, expected.gradKey, "gradKey");
    expectClose(t.gradValue, expected.gradValue, "gradValue");
  }
}
