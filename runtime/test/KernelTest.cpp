//===- KernelTest.cpp - Linking and calling kernels -----------------------===//

#include "ExecutableBytes.h"
#include "HalfConversions.h"
#include "IRCompiler.h"
#include "ProgramBuilder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

using namespace torch_ltc::runtime;
using namespace torch_ltc::runtime::test;

namespace {

/// buffers[1][i] = buffers[0][i] * 2 + 1 for i in [begin, end), in double.
const char *kScaleIR = R"(
define void @scale(ptr %buffers, i64 %begin, i64 %end) {
entry:
  %in = load ptr, ptr %buffers
  %slot = getelementptr ptr, ptr %buffers, i64 1
  %out = load ptr, ptr %slot
  %empty = icmp sge i64 %begin, %end
  br i1 %empty, label %exit, label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %src = getelementptr double, ptr %in, i64 %i
  %x = load double, ptr %src
  %y = fmul double %x, 2.0
  %z = fadd double %y, 1.0
  %dst = getelementptr double, ptr %out, i64 %i
  store double %z, ptr %dst
  %next = add i64 %i, 1
  %done = icmp sge i64 %next, %end
  br i1 %done, label %exit, label %loop
exit:
  ret void
}
)";

/// Stores the part's begin and end at buffers[0] + 2 * begin.
const char *kPartsIR = R"(
define void @parts(ptr %buffers, i64 %begin, i64 %end) {
  %out = load ptr, ptr %buffers
  %index = mul i64 %begin, 2
  %first = getelementptr i64, ptr %out, i64 %index
  store i64 %begin, ptr %first
  %second = getelementptr i64, ptr %first, i64 1
  store i64 %end, ptr %second
  ret void
}
)";

Executable scaleProgram(int64_t count, int64_t grain) {
  ProgramBuilder builder;
  HostTensor tensor(FLOAT64, {count});
  uint32_t in = builder.parameter(tensor, "x");
  uint32_t out = builder.output(tensor);
  uint32_t temporary = builder.arena(tensor.bytes.size());
  uint32_t kernel = builder.kernel("scale", compileIR(kScaleIR));
  builder.callKernel(kernel, {in, temporary}, count, grain);
  builder.callKernel(kernel, {temporary, out}, count, grain);
  return builder.message;
}

} // namespace

TEST(Kernel, RunsInParts) {
  for (int64_t count : {1, 7, 1000, 100000})
    for (int64_t grain : {0, 1, 64, 1000000}) {
      Program program(scaleProgram(count, grain));
      std::vector<double> in(count), out(count);
      for (int64_t i = 0; i < count; ++i)
        in[i] = double(i);
      for (int threads : {1, 2, 3}) {
        std::fill(out.begin(), out.end(), 0);
        ASSERT_EQ(program.run({in.data()}, {out.data()}, threads), "");
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(out[i], 4 * double(i) + 3);
      }
    }
}

/// The parts that a trip count is split into, as (begin, end).
static std::vector<std::pair<int64_t, int64_t>>
partsOf(int64_t count, int64_t grain, int threads) {
  ProgramBuilder builder;
  HostTensor tensor(INT64, {2 * count});
  uint32_t out = builder.output(tensor);
  uint32_t kernel = builder.kernel("parts", compileIR(kPartsIR));
  builder.callKernel(kernel, {out}, count, grain);
  Program program(builder.message);
  std::vector<int64_t> slots(2 * count, -1);
  EXPECT_EQ(program.run({}, {slots.data()}, threads), "");
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (int64_t i = 0; i < count; ++i)
    if (slots[2 * i] >= 0)
      parts.emplace_back(slots[2 * i], slots[2 * i + 1]);
  return parts;
}

TEST(Kernel, GrainDecidesOnThreads) {
  EXPECT_EQ(partsOf(1000, 0, 2).size(), 1u);
  EXPECT_EQ(partsOf(1000, 1000, 2).size(), 1u);
  EXPECT_EQ(partsOf(1000, 999, 2).size(), 2u);
  EXPECT_EQ(partsOf(1000, 1, 1).size(), 1u);
  EXPECT_EQ(partsOf(3, 1, 8).size(), 3u);
  EXPECT_EQ(partsOf(1000, 400, 8).size(), 3u);
}

TEST(Kernel, PartsCoverTheTripCount) {
  for (int64_t count : {2, 5, 1023, 5000, 100001}) {
    int64_t expected = 0;
    for (auto [begin, end] : partsOf(count, 1, 3)) {
      EXPECT_EQ(begin, expected);
      // Long parts begin at cache line boundaries.
      if (count >= 5000) {
        EXPECT_EQ(begin % 64, 0);
      }
      expected = end;
    }
    EXPECT_EQ(expected, count);
  }
}

TEST(Kernel, SeveralThreadsRunOneProgram) {
  Program program(scaleProgram(20000, 4096));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<double> in(20000, t), out(20000);
      for (int repeat = 0; repeat < 50; ++repeat) {
        std::fill(out.begin(), out.end(), -1);
        if (program.run({in.data()}, {out.data()}, 1 + repeat % 2) != "")
          ++wrong;
        for (double value : out)
          wrong += value != 4.0 * t + 3;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Kernel, SeveralThreadsLoadPrograms) {
  std::string bytes = serializeExecutable(scaleProgram(100, 0));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::vector<double> in(100, 1), out(100);
      for (int repeat = 0; repeat < 25; ++repeat) {
        LtcExecutable executable = nullptr;
        wrong += ltcExecutableLoad(bytes.data(), bytes.size(), &executable) !=
                 nullptr;
        if (!executable)
          continue;
        void *parameters[] = {in.data()}, *outputs[] = {out.data()};
        LtcRunArguments arguments = {};
        arguments.parameters = parameters;
        arguments.outputs = outputs;
        arguments.num_threads = 1;
        wrong += ltcExecutableRun(executable, &arguments) != nullptr;
        wrong += out[99] != 7;
        ltcExecutableDestroy(executable);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Kernel, SymbolsOfProgramsDontMeet) {
  std::string other = kScaleIR;
  size_t position = other.find("2.0");
  other.replace(position, 3, "3.0");
  Executable first = scaleProgram(4, 0), second = first;
  second.mutable_kernels(0)->set_object(compileIR(other));
  Program a(first), b(second);
  std::vector<double> in(4, 1.0), out(4);
  ASSERT_EQ(a.run({in.data()}, {out.data()}), "");
  EXPECT_EQ(out[0], 7);
  ASSERT_EQ(b.run({in.data()}, {out.data()}), "");
  EXPECT_EQ(out[0], 13);
}

TEST(Kernel, ScalarsAndConstants) {
  ProgramBuilder builder;
  HostTensor tensor(FLOAT64, {1});
  uint32_t out = builder.output(tensor);
  uint32_t scalar = builder.scalar(FLOAT);
  double three = 3;
  uint32_t constant =
      builder.constant(std::string(reinterpret_cast<char *>(&three), 8));
  uint32_t kernel = builder.kernel("multiply", compileIR(R"(
define void @multiply(ptr %buffers, i64 %begin, i64 %end) {
  %out = load ptr, ptr %buffers
  %s1 = getelementptr ptr, ptr %buffers, i64 1
  %a = load ptr, ptr %s1
  %s2 = getelementptr ptr, ptr %buffers, i64 2
  %b = load ptr, ptr %s2
  %x = load double, ptr %a
  %y = load double, ptr %b
  %z = fmul double %x, %y
  store double %z, ptr %out
  ret void
})"));
  builder.callKernel(kernel, {out, scalar, constant}, 1, 0);
  Program program(builder.message);
  double result = 0;
  LtcScalar value;
  value.as_float = 1.25;
  ASSERT_EQ(program.run({}, {&result}, 1, {value}), "");
  EXPECT_EQ(result, 3.75);
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

TEST(KernelSymbols, MathAndMemory) {
  // Calls libm, libmvec and the C library, as code generated by LLVM does.
  ProgramBuilder builder;
  HostTensor in(FLOAT64, {2}), out(FLOAT64, {6});
  uint32_t input = builder.parameter(in);
  uint32_t result = builder.output(out);
  uint32_t kernel = builder.kernel("math", compileIR(R"(
declare double @erf(double)
declare <2 x double> @_ZGVbN2v_sin(<2 x double>)
declare ptr @memcpy(ptr, ptr, i64)
define void @math(ptr %buffers, i64 %begin, i64 %end) {
  %in = load ptr, ptr %buffers
  %slot = getelementptr ptr, ptr %buffers, i64 1
  %out = load ptr, ptr %slot
  %copied = call ptr @memcpy(ptr %out, ptr %in, i64 16)
  %x = load double, ptr %in
  %e = call double @erf(double %x)
  %o2 = getelementptr double, ptr %out, i64 2
  store double %e, ptr %o2
  %v = load <2 x double>, ptr %in, align 8
  %s = call <2 x double> @_ZGVbN2v_sin(<2 x double> %v)
  %o4 = getelementptr double, ptr %out, i64 4
  store <2 x double> %s, ptr %o4, align 8
  ret void
})"));
  builder.callKernel(kernel, {input, result}, 1, 0);
  Program program(builder.message);
  double x[2] = {0.5, 2.0}, y[6] = {};
  ASSERT_EQ(program.run({x}, {y}), "");
  EXPECT_EQ(y[0], 0.5);
  EXPECT_EQ(y[1], 2.0);
  EXPECT_DOUBLE_EQ(y[2], std::erf(0.5));
  EXPECT_NEAR(y[4], std::sin(0.5), 1e-14);
  EXPECT_NEAR(y[5], std::sin(2.0), 1e-14);
}

TEST(KernelSymbols, HalfPrecisionWithoutInstructions) {
  // x86-64's baseline has no instructions for bfloat16: LLVM calls
  // __truncsfbf2.
  ProgramBuilder builder;
  HostTensor in(FLOAT32, {1}), out(BFLOAT16, {1});
  uint32_t input = builder.parameter(in), result = builder.output(out);
  uint32_t kernel = builder.kernel("narrow", compileIR(R"(
define void @narrow(ptr %buffers, i64 %begin, i64 %end) {
  %in = load ptr, ptr %buffers
  %slot = getelementptr ptr, ptr %buffers, i64 1
  %out = load ptr, ptr %slot
  %x = load float, ptr %in
  %y = fptrunc float %x to bfloat
  store bfloat %y, ptr %out
  ret void
})"));
  builder.callKernel(kernel, {input, result}, 1, 0);
  Program program(builder.message);
  auto narrow = [&](float value) {
    uint16_t bits = 0;
    EXPECT_EQ(program.run({&value}, {&bits}), "");
    return bits;
  };
  EXPECT_EQ(narrow(1.0f), 0x3f80);
  EXPECT_EQ(narrow(1.00390625f), 0x3f80); // tie to even, down
  EXPECT_EQ(narrow(1.01171875f), 0x3f82); // tie to even, up
  EXPECT_EQ(narrow(-3.4e38f), 0xff80);    // rounds to infinity
  EXPECT_EQ(narrow(NAN) & 0x7fc0, 0x7fc0);
}

TEST(KernelSymbols, DoubleToBFloatRoundsOnce) {
  auto function =
      reinterpret_cast<_Float16 (*)(double)>(halfConversion("__truncdfbf2"));
  auto bits = [&](double value) {
    _Float16 half = function(value);
    uint16_t result;
    std::memcpy(&result, &half, 2);
    return result;
  };
  // Just above the midpoint between 1 and the next bfloat16: rounding to float
  // first would produce a tie, and then 1.
  EXPECT_EQ(bits(1.00390625 + 1e-12), 0x3f81);
  EXPECT_EQ(bits(1.00390625), 0x3f80);
  EXPECT_EQ(bits(1.01171875 - 1e-12), 0x3f81);
  EXPECT_EQ(bits(-1.00390625 - 1e-12), 0xbf81);
  EXPECT_EQ(bits(1e300), 0x7f80);
  EXPECT_EQ(bits(-1e-300), 0x8000);
  EXPECT_EQ(bits(0.0), 0);
  EXPECT_EQ(halfConversion("__nothing"), nullptr);
}

TEST(KernelSymbols, MissingOnesAreNamed) {
  ProgramBuilder builder;
  builder.kernel("lost", compileIR(R"(
declare void @nowhere_to_be_found()
define void @lost(ptr %buffers, i64 %begin, i64 %end) {
  call void @nowhere_to_be_found()
  ret void
})"));
  std::string error;
  EXPECT_EQ(loadProgram(builder.message, &error), nullptr);
  EXPECT_NE(error.find("nowhere_to_be_found"), std::string::npos) << error;
}

TEST(KernelSymbols, ObjectsMustDefineTheirKernel) {
  ProgramBuilder builder;
  builder.kernel("absent", compileIR(kScaleIR));
  std::string error;
  EXPECT_EQ(loadProgram(builder.message, &error), nullptr);
  EXPECT_NE(error.find("absent"), std::string::npos) << error;

  builder.message.mutable_kernels(0)->set_object("not an object");
  EXPECT_EQ(loadProgram(builder.message, &error), nullptr);
  EXPECT_NE(error.find("can't be linked"), std::string::npos) << error;

  std::string truncated = compileIR(kScaleIR);
  truncated.resize(truncated.size() / 2);
  builder.message.mutable_kernels(0)->set_symbol("scale");
  builder.message.mutable_kernels(0)->set_object(truncated);
  EXPECT_EQ(loadProgram(builder.message, &error), nullptr);
  EXPECT_NE(error.find("can't be linked"), std::string::npos) << error;
}
