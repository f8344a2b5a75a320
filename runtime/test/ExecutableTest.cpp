//===- ExecutableTest.cpp - Metadata, memory and timing of runs -----------===//

#include "Arena.h"
#include "OpenMp.h"
#include "ProgramBuilder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

using namespace torch_ltc::runtime;
using namespace torch_ltc::runtime::test;

namespace {

/// A program that copies a parameter through the arena to an output.
Executable copyProgram(int64_t bytes) {
  ProgramBuilder builder;
  HostTensor tensor(UINT8, {bytes});
  uint32_t in = builder.parameter(tensor, "in"), out = builder.output(tensor);
  uint32_t temporary = builder.arena(bytes);
  builder.copy(in, temporary, bytes);
  builder.copy(temporary, out, bytes);
  return builder.message;
}

std::vector<char> sequence(size_t bytes) {
  std::vector<char> values(bytes);
  std::iota(values.begin(), values.end(), char(1));
  return values;
}

} // namespace

TEST(Executable, Describes) {
  ProgramBuilder builder;
  builder.message.set_name("step");
  HostTensor weight(BFLOAT16, {3, 5}), count(INT64, {});
  uint32_t in = builder.parameter(weight, "fc.weight");
  builder.parameter(count);
  uint32_t out = builder.output(weight);
  builder.output(weight);
  builder.output(count);
  builder.message.mutable_outputs(1)->set_donated_parameter(0);
  builder.message.mutable_outputs(2)->set_forwarded_parameter(1);
  builder.scalar(INT);
  builder.arena(100);
  builder.copy(in, out, 30);
  builder.fill(out, 2);
  builder.message.mutable_commands(1)->set_name("aten.zeros");
  Program program(builder.message);
  LtcExecutable e = program.executable;

  ASSERT_EQ(ltcExecutableNumParameters(e), 2u);
  LtcTensorInfo info = ltcExecutableParameter(e, 0);
  EXPECT_EQ(info.dtype, LTC_DTYPE_BFLOAT16);
  ASSERT_EQ(info.rank, 2u);
  EXPECT_EQ(info.sizes[0], 3);
  EXPECT_EQ(info.sizes[1], 5);
  EXPECT_EQ(info.bytes, 30u);
  EXPECT_STREQ(info.name, "fc.weight");
  EXPECT_EQ(ltcExecutableParameter(e, 1).rank, 0u);
  EXPECT_EQ(ltcExecutableParameter(e, 1).bytes, 8u);
  EXPECT_STREQ(ltcExecutableParameter(e, 1).name, "");

  ASSERT_EQ(ltcExecutableNumOutputs(e), 3u);
  EXPECT_EQ(ltcExecutableOutput(e, 0).place, LTC_OUTPUT_CALLER);
  EXPECT_EQ(ltcExecutableOutput(e, 1).place, LTC_OUTPUT_DONATED);
  EXPECT_EQ(ltcExecutableOutput(e, 1).parameter, 0u);
  EXPECT_EQ(ltcExecutableOutput(e, 2).place, LTC_OUTPUT_FORWARDED);
  EXPECT_EQ(ltcExecutableOutput(e, 2).parameter, 1u);
  EXPECT_EQ(ltcExecutableOutput(e, 2).type.dtype, LTC_DTYPE_INT64);

  ASSERT_EQ(ltcExecutableNumScalars(e), 1u);
  EXPECT_EQ(ltcExecutableScalarIsFloat(e, 0), 0);
  EXPECT_EQ(ltcExecutableArenaBytes(e), 100u);
  EXPECT_EQ(ltcExecutableNumKernels(e), 0u);
  ASSERT_EQ(ltcExecutableNumCommands(e), 2u);
  EXPECT_STREQ(ltcExecutableCommand(e, 0).name, "copy 30 bytes");
  EXPECT_STREQ(ltcExecutableCommand(e, 1).name, "aten.zeros");
  EXPECT_STREQ(ltcExecutableCommand(e, 1).location, "");
}

TEST(Executable, NamesNeedNotBeUtf8) {
  Executable message = copyProgram(8);
  message.mutable_parameters(0)->set_name("caf\xe9.weight");
  message.mutable_commands(0)->set_location("/home/caf\xe9/train.py:31");
  Program program(message);
  EXPECT_STREQ(ltcExecutableParameter(program.executable, 0).name,
               "caf\xe9.weight");
}

TEST(Executable, CopiesAndFills) {
  for (int64_t bytes : {0, 1, 63, 1000, 3 << 20})
    for (int threads : {1, 2, 3}) {
      Program program(copyProgram(bytes));
      std::vector<char> in = sequence(bytes), out(bytes);
      ASSERT_EQ(program.run({in.data()}, {out.data()}, threads), "");
      ASSERT_EQ(in, out);
    }
}

TEST(Executable, FillsWithZeros) {
  ProgramBuilder builder;
  HostTensor tensor(UINT8, {1 << 20});
  uint32_t out = builder.output(tensor);
  FillCall *call = builder.fill(out, (1 << 20) - 20);
  call->mutable_destination()->set_offset(10);
  Program program(builder.message);
  std::vector<char> bytes(1 << 20, 'x');
  ASSERT_EQ(program.run({}, {bytes.data()}), "");
  EXPECT_EQ(bytes[9], 'x');
  EXPECT_EQ(bytes[bytes.size() - 10], 'x');
  for (size_t i = 10; i < bytes.size() - 10; ++i)
    ASSERT_EQ(bytes[i], 0) << i;
}

TEST(Executable, DonationWritesTheParameter) {
  ProgramBuilder builder;
  HostTensor tensor(FLOAT32, {4});
  uint32_t source = builder.parameter(tensor);
  uint32_t target = builder.parameter(tensor);
  uint32_t out = builder.output(tensor);
  builder.message.mutable_outputs(0)->set_donated_parameter(1);
  builder.copy(source, out, 8);
  CopyCall *second = builder.copy(source, target, 8);
  second->mutable_source()->set_offset(8);
  second->mutable_destination()->set_offset(8);
  Program program(builder.message);
  float values[4] = {1, 2, 3, 4}, donated[4] = {};
  ASSERT_EQ(program.run({values, donated}, {nullptr}), "");
  EXPECT_EQ(std::memcmp(values, donated, sizeof(values)), 0);
}

TEST(Executable, RejectsBadArguments) {
  Program program(copyProgram(64));
  std::vector<char> in(64), out(64);
  EXPECT_NE(program.run({nullptr}, {out.data()}).find("Parameter 0 ('in')"),
            std::string::npos);
  EXPECT_NE(program.run({in.data()}, {nullptr}).find("Output 0"),
            std::string::npos);
  EXPECT_NE(program.run({in.data()}, {out.data()}, 0).find("at least 1"),
            std::string::npos);
  EXPECT_NE(program.run({}, {}).find("without its"), std::string::npos);
  // The program still runs afterwards.
  EXPECT_EQ(program.run({in.data()}, {out.data()}), "");
}

TEST(Executable, TimesItsCommands) {
  Program program(copyProgram(4 << 20));
  std::vector<char> in(4 << 20), out(4 << 20);
  int64_t nanoseconds[2] = {-1, -1};
  ASSERT_EQ(program.run({in.data()}, {out.data()}, 1, {}, nanoseconds), "");
  for (int64_t value : nanoseconds) {
    EXPECT_GT(value, 10000); // 4 MB in 10 us would be 400 GB/s
    EXPECT_LT(value, 10000000000);
  }
}

TEST(Executable, RestoresTheThreadCount) {
  Program program(copyProgram(1 << 20));
  std::vector<char> in(1 << 20), out(1 << 20);
  int before = omp_get_max_threads();
  omp_set_num_threads(5);
  ASSERT_EQ(program.run({in.data()}, {out.data()}, 2), "");
  EXPECT_EQ(omp_get_max_threads(), 5);
  omp_set_num_threads(before);
}

//===----------------------------------------------------------------------===//
// Arenas
//===----------------------------------------------------------------------===//

TEST(Arena, IsReusedAcrossStepsAndPrograms) {
  ArenaPool &pool = ArenaPool::process();
  Program large(copyProgram(5 << 20)), small(copyProgram(1 << 20));
  std::vector<char> in = sequence(5 << 20), out(5 << 20);
  ASSERT_EQ(large.run({in.data()}, {out.data()}), "");
  size_t created = pool.numCreated(), bytes = pool.idleBytes();
  for (int step = 0; step < 20; ++step) {
    ASSERT_EQ(large.run({in.data()}, {out.data()}), "");
    ASSERT_EQ(small.run({in.data()}, {out.data()}), "");
  }
  EXPECT_EQ(pool.numCreated(), created);
  EXPECT_EQ(pool.idleBytes(), bytes);
}

TEST(Arena, GrowsByReplacing) {
  ArenaPool pool;
  auto small = pool.acquire(1000);
  ASSERT_TRUE(bool(small));
  pool.release(std::move(*small));
  auto large = pool.acquire(100000);
  ASSERT_TRUE(bool(large));
  EXPECT_EQ(pool.idleBytes(), 0u);
  EXPECT_EQ(pool.bytes(), 100000u);
  pool.release(std::move(*large));
  EXPECT_EQ(pool.idleBytes(), 100000u);
  EXPECT_EQ(pool.bytes(), 100000u);
}

TEST(Arena, SmallestThatFits) {
  ArenaPool pool;
  std::vector<std::unique_ptr<Arena>> arenas;
  for (size_t bytes : {100, 5000, 300}) {
    auto arena = pool.acquire(bytes);
    ASSERT_TRUE(bool(arena));
    arenas.push_back(std::move(*arena));
  }
  for (std::unique_ptr<Arena> &arena : arenas)
    pool.release(std::move(arena));
  auto arena = pool.acquire(200);
  ASSERT_TRUE(bool(arena));
  EXPECT_EQ((*arena)->size(), 300u);
}

TEST(Arena, IsAligned) {
  for (size_t bytes : {1, 100, 5000000}) {
    auto arena = Arena::create(bytes);
    ASSERT_TRUE(bool(arena));
    EXPECT_EQ(uintptr_t((*arena)->data()) % 64, 0u);
    std::memset((*arena)->data(), 1, bytes);
  }
}

TEST(Arena, TooLargeIsASentence) {
  for (size_t bytes : {size_t(1) << 60, ~size_t(0)}) {
    auto arena = Arena::create(bytes);
    ASSERT_FALSE(bool(arena));
    EXPECT_FALSE(llvm::toString(arena.takeError()).empty());
  }
}

TEST(Arena, RunsAtOnceHaveTheirOwn) {
  Program program(copyProgram(200000));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<char> in(200000, char(t)), out(200000);
      for (int step = 0; step < 100; ++step) {
        wrong += program.run({in.data()}, {out.data()}, 1) != "";
        wrong += in != out;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Constants, AreAligned) {
  ProgramBuilder builder;
  HostTensor tensor(UINT8, {3});
  uint32_t out = builder.output(tensor);
  builder.constant("x");
  uint32_t second = builder.constant("abc");
  builder.constant("");
  builder.copy(second, out, 3);
  Program program(builder.message);
  char bytes[3];
  ASSERT_EQ(program.run({}, {bytes}), "");
  EXPECT_EQ(std::string(bytes, 3), "abc");
}
