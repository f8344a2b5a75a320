//===- MatmulTest.cpp - Matrix products against naive loops ---------------===//

#include "LoopKernels.h"
#include "OpenMp.h"
#include "PreparedCommand.h"
#include "ProgramBuilder.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace torch_ltc::runtime;
using namespace torch_ltc::runtime::test;

namespace {

struct Case {
  DType dtype = FLOAT32;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool transposeA = false, transposeB = false;
  bool broadcastA = false, broadcastB = false;
  bool bias = false, accumulate = false;
  int threads = 2;

  std::string text() const {
    return "dtype " + std::to_string(dtype) + " batch " +
           std::to_string(batch) + " m " + std::to_string(m) + " n " +
           std::to_string(n) + " k " + std::to_string(k) +
           (transposeA ? " A^T" : "") + (transposeB ? " B^T" : "") +
           (broadcastA ? " broadcast A" : "") +
           (broadcastB ? " broadcast B" : "") + (bias ? " bias" : "") +
           (accumulate ? " accumulate" : "") + " threads " +
           std::to_string(threads);
  }
};

struct Operands {
  Operands(const Case &c, std::mt19937 &generator)
      : a(c.dtype, {c.broadcastA ? 1 : c.batch, c.m, c.k}),
        b(c.dtype, {c.broadcastB ? 1 : c.batch, c.k, c.n}),
        c(c.dtype, {c.batch, c.m, c.n}), bias(c.dtype, {c.n}) {
    for (HostTensor *tensor : {&a, &b, &this->c, &bias})
      tensor->fillRandom(generator);
  }
  HostTensor a, b, c, bias;
};

/// The result in double; integers wrap when they are stored.
std::vector<double> expectedResult(const Case &c, const Operands &operands) {
  std::vector<double> result(c.batch * c.m * c.n);
  for (int64_t q = 0; q < c.batch; ++q)
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < c.n; ++j) {
        int64_t index = (q * c.m + i) * c.n + j;
        double sum = c.accumulate ? operands.c.get(index) : 0;
        if (c.bias)
          sum += operands.bias.get(j);
        int64_t baseA = c.broadcastA ? 0 : q * c.m * c.k;
        int64_t baseB = c.broadcastB ? 0 : q * c.k * c.n;
        for (int64_t p = 0; p < c.k; ++p)
          sum += operands.a.get(baseA +
                                (c.transposeA ? p * c.m + i : i * c.k + p)) *
                 operands.b.get(baseB +
                                (c.transposeB ? j * c.k + p : p * c.n + j));
        result[index] = sum;
      }
  return result;
}

void expectEqual(const HostTensor &actual,
                 const std::vector<double> &expected) {
  HostTensor stored(actual.dtype, actual.sizes);
  // Sums of small integers are exact except for the rounding of the result.
  double tolerance = actual.dtype == BFLOAT16  ? 1.0 / 256
                     : actual.dtype == FLOAT16 ? 1.0 / 2048
                                               : 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    stored.set(i, expected[i]);
    double reference = tolerance ? expected[i] : stored.get(i);
    ASSERT_LE(std::abs(actual.get(i) - reference),
              tolerance * std::abs(reference))
        << "element " << i << ": " << actual.get(i) << ", expected "
        << reference;
  }
}

Executable programOf(const Case &c, const Operands &operands) {
  ProgramBuilder builder;
  uint32_t a = builder.parameter(operands.a);
  uint32_t b = builder.parameter(operands.b);
  uint32_t result = builder.output(operands.c);
  MatmulCall *call = builder.matmul();
  call->set_dtype(c.dtype);
  call->set_batch(c.batch);
  call->set_m(c.m);
  call->set_n(c.n);
  call->set_k(c.k);
  call->set_transpose_a(c.transposeA);
  call->set_transpose_b(c.transposeB);
  call->set_batch_stride_a(c.broadcastA ? 0 : c.m * c.k);
  call->set_batch_stride_b(c.broadcastB ? 0 : c.k * c.n);
  setRef(call->mutable_a(), a);
  setRef(call->mutable_b(), b);
  setRef(call->mutable_c(), result);
  call->set_accumulate(c.accumulate);
  if (c.bias)
    setRef(call->mutable_bias(), builder.parameter(operands.bias));
  return builder.message;
}

void check(const Case &c) {
  SCOPED_TRACE(c.text());
  std::mt19937 generator(7);
  Operands operands(c, generator);
  std::vector<double> expected = expectedResult(c, operands);
  Program program(programOf(c, operands));
  std::vector<void *> parameters = {operands.a.bytes.data(),
                                    operands.b.bytes.data()};
  if (c.bias)
    parameters.push_back(operands.bias.bytes.data());
  poisonArenas();
  ASSERT_EQ(program.run(parameters, {operands.c.bytes.data()}, c.threads), "");
  expectEqual(operands.c, expected);
}

const DType kDTypes[] = {UINT8,   INT8,     INT16,   INT32,  INT64,
                         FLOAT16, BFLOAT16, FLOAT32, FLOAT64};

} // namespace

TEST(Matmul, DTypesAndTransposes) {
  for (DType dtype : kDTypes)
    for (bool transposeA : {false, true})
      for (bool transposeB : {false, true}) {
        Case c;
        c.dtype = dtype;
        c.m = 37, c.n = 29, c.k = 41;
        c.transposeA = transposeA, c.transposeB = transposeB;
        check(c);
      }
}

TEST(Matmul, BiasAndAccumulate) {
  for (DType dtype : kDTypes)
    for (bool bias : {false, true})
      for (bool accumulate : {false, true}) {
        Case c;
        c.dtype = dtype;
        c.m = 19, c.n = 33, c.k = 17;
        c.bias = bias, c.accumulate = accumulate;
        check(c);
        c.batch = 3;
        check(c);
      }
}

TEST(Matmul, BatchesAndBroadcast) {
  for (DType dtype : {INT32, BFLOAT16, FLOAT32, FLOAT64})
    for (int transposes = 0; transposes < 4; ++transposes)
      for (int broadcasts = 0; broadcasts < 4; ++broadcasts) {
        Case c;
        c.dtype = dtype;
        c.batch = 5, c.m = 9, c.n = 11, c.k = 13;
        c.transposeA = transposes & 1, c.transposeB = transposes & 2;
        c.broadcastA = broadcasts & 1, c.broadcastB = broadcasts & 2;
        check(c);
      }
}

TEST(Matmul, OddSizes) {
  // Vectors, single elements, and sizes on both sides of the loops' block
  // sizes.
  const int64_t sizes[][3] = {{1, 1, 1},     {1, 300, 40},   {300, 1, 40},
                              {40, 300, 1},  {97, 257, 255}, {96, 256, 256},
                              {95, 15, 513}, {6, 8, 700},    {200, 520, 64}};
  for (DType dtype : {INT64, INT16, FLOAT32, FLOAT64})
    for (const auto &size : sizes)
      for (int threads : {1, 2, 4}) {
        Case c;
        c.dtype = dtype;
        c.m = size[0], c.n = size[1], c.k = size[2];
        c.threads = threads;
        check(c);
        c.transposeA = c.transposeB = true;
        check(c);
      }
}

TEST(Matmul, Vectors) {
  // 600 rows are more than one block of the loops; 17 and 3 leave a remainder.
  for (DType dtype : kDTypes)
    for (bool oneRow : {false, true})
      for (bool transposeA : {false, true})
        for (bool transposeB : {false, true})
          for (int64_t other : {3, 17, 600}) {
            Case c;
            c.dtype = dtype;
            c.m = oneRow ? 1 : other;
            c.n = oneRow ? other : 1;
            c.k = 45;
            c.transposeA = transposeA, c.transposeB = transposeB;
            check(c);
            c.bias = c.accumulate = true;
            check(c);
          }
  // These products are large enough for two threads.
  Case c;
  c.m = 700, c.n = 1, c.k = 400;
  check(c);
  c.transposeA = true;
  check(c);
}

TEST(Matmul, EmptySizes) {
  for (DType dtype : {INT32, BFLOAT16, FLOAT32, FLOAT64})
    for (int empty = 0; empty < 4; ++empty)
      for (bool bias : {false, true})
        for (bool accumulate : {false, true}) {
          Case c;
          c.dtype = dtype;
          c.batch = empty == 0 ? 0 : 2;
          c.m = empty == 1 ? 0 : 3;
          c.n = empty == 2 ? 0 : 4;
          c.k = empty == 3 ? 0 : 5;
          c.bias = bias, c.accumulate = accumulate;
          check(c);
        }
}

TEST(Matmul, GapsBetweenMatrices) {
  // The matrices of an operand are 40 elements apart; A's have 3 * 5 elements
  // and B's 5 * 4.
  for (DType dtype : {FLOAT32, FLOAT64}) {
    Case c;
    c.dtype = dtype;
    c.batch = 4, c.m = 3, c.n = 4, c.k = 5;
    std::mt19937 generator(3);
    Operands dense(c, generator);
    std::vector<double> expected = expectedResult(c, dense);
    HostTensor a(dtype, {4, 40}), b(dtype, {4, 40});
    for (int64_t q = 0; q < 4; ++q) {
      for (int64_t i = 0; i < 15; ++i)
        a.set(q * 40 + i, dense.a.get(q * 15 + i));
      for (int64_t i = 0; i < 20; ++i)
        b.set(q * 40 + i, dense.b.get(q * 20 + i));
    }
    Executable message = programOf(c, dense);
    for (int i : {0, 1}) {
      message.mutable_parameters(i)->mutable_type()->mutable_sizes()->Clear();
      message.mutable_parameters(i)->mutable_type()->add_sizes(160);
      message.mutable_buffers(i)->set_bytes(a.bytes.size());
    }
    MatmulCall *call = message.mutable_commands(0)->mutable_matmul();
    call->set_batch_stride_a(40);
    call->set_batch_stride_b(40);
    Program program(message);
    ASSERT_EQ(
        program.run({a.bytes.data(), b.bytes.data()}, {dense.c.bytes.data()}),
        "");
    expectEqual(dense.c, expected);
  }
}

TEST(Matmul, EveryInstructionSet) {
  // loopKernels selects the best instruction set; the others must be correct
  // too.
  std::vector<const LoopKernels *(*)(int)> tables = {baseline::loopKernels};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    tables.push_back(avx2::loopKernels);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
    tables.push_back(avx512::loopKernels);
#endif
  std::vector<char> memory(kBlockScratchBytes + 64);
  char *scratch = memory.data() + 64 - uintptr_t(memory.data()) % 64;
  for (auto table : tables)
    for (DType dtype : kDTypes) {
      Case c;
      c.dtype = dtype;
      c.m = 50, c.n = 70, c.k = 300;
      c.transposeB = true;
      std::mt19937 generator(11);
      Operands operands(c, generator);
      std::vector<double> expected = expectedResult(c, operands);
      GemmArguments arguments = {operands.a.bytes.data(),
                                 operands.b.bytes.data(),
                                 nullptr,
                                 operands.c.bytes.data(),
                                 c.m,
                                 c.n,
                                 c.k,
                                 false,
                                 true,
                                 false};
      table(dtype)->gemm(arguments, {0, c.m, 0, c.n}, scratch);
      expectEqual(operands.c, expected);
    }
  EXPECT_EQ(loopKernels(BOOL), nullptr);
}

TEST(Matmul, ObeysThreadCount) {
  Case c;
  c.m = c.n = c.k = 256;
  std::mt19937 generator(1);
  Operands operands(c, generator);
  std::vector<double> expected = expectedResult(c, operands);
  Program program(programOf(c, operands));
  int before = omp_get_max_threads();
  for (int threads : {1, 3, 2, 1}) {
    poisonArenas();
    ASSERT_EQ(program.run({operands.a.bytes.data(), operands.b.bytes.data()},
                          {operands.c.bytes.data()}, threads),
              "");
    expectEqual(operands.c, expected);
    EXPECT_EQ(omp_get_max_threads(), before);
  }
}

/// The results of short commands don't depend on the number of threads, which
/// may depend on the load of the processors (TracingThreadLoad.h).
TEST(Matmul, ShortTeamsMayBeOfAnySize) {
  std::mt19937 generator(3);
  std::uniform_real_distribution<double> real(-1, 1);
  const int64_t sizes[][3] = {{32, 512, 128}, {32, 128, 512},  {512, 128, 32},
                              {8, 8, 1024},   {16, 16, 4096},  {64, 64, 64},
                              {1, 300, 700},  {256, 784, 128}, {50, 70, 300}};
  for (DType dtype : {FLOAT32, BFLOAT16, FLOAT64})
    for (auto [m, n, k] : sizes) {
      Case c;
      c.dtype = dtype;
      c.m = m, c.n = n, c.k = k;
      Operands operands(c, generator);
      for (HostTensor *tensor : {&operands.a, &operands.b})
        for (int64_t i = 0; i < tensor->numElements(); ++i)
          tensor->set(i, real(generator));
      Program program(programOf(c, operands));
      Command product = programOf(c, operands).commands(0);
      auto command = prepareMatmul(product, {.numThreads = 4});
      ASSERT_TRUE(bool(command));
      if ((*command)->team() == Team::Long)
        continue;
      std::vector<char> first;
      for (int threads : {1, 2, 3, 4}) {
        ASSERT_EQ(
            program.run({operands.a.bytes.data(), operands.b.bytes.data()},
                        {operands.c.bytes.data()}, threads),
            "");
        if (first.empty())
          first = operands.c.bytes;
        ASSERT_TRUE(first == operands.c.bytes) << c.text() << threads;
      }
    }
}
