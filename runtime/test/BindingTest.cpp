//===- BindingTest.cpp - General executables bound to sizes ---------------===//

#include "ArenaPlan.h"
#include "GeneralProgram.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <thread>

using namespace torch_ltc::runtime;
using namespace torch_ltc::runtime::test;

namespace {

LtcExecutable bindTo(LtcExecutable general, std::vector<int64_t> sizes,
                     std::string *error) {
  LtcExecutable bound = nullptr;
  LtcSizes values{sizes.data(), sizes.size(), nullptr, 0};
  LtcStatus status = ltcExecutableBind(general, &values, &bound);
  *error = status ? ltcStatusMessage(status) : "";
  ltcStatusDestroy(status);
  return bound;
}

/// Returns the error of binding `message` to `sizes`; "" if there is none.
/// Loading `message` must succeed.
std::string bindingError(const Executable &message,
                         std::vector<int64_t> sizes) {
  std::string error;
  LtcExecutable general = loadProgram(message, &error);
  EXPECT_EQ(error, "");
  if (!general)
    return "";
  ltcExecutableDestroy(bindTo(general, std::move(sizes), &error));
  ltcExecutableDestroy(general);
  return error;
}

std::string loadError(const Executable &message) {
  std::string error;
  ltcExecutableDestroy(loadProgram(message, &error));
  return error;
}

/// Runs a bound generalProgram() once. Returns the error, the first wrong
/// element, or "" if the results are right.
std::string runBound(LtcExecutable bound, int64_t rows, int64_t columns,
                     int threads) {
  std::vector<float> x(rows * 4), w(4 * columns), result(rows * columns, -1);
  std::vector<int32_t> zeros(rows, -1);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(i % 5) - 2;
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = float(i % 7) - 3;
  void *parameters[] = {x.data(), w.data()};
  void *outputs[] = {result.data(), zeros.data()};
  LtcRunArguments arguments{};
  arguments.parameters = parameters;
  arguments.outputs = outputs;
  arguments.num_threads = threads;
  if (LtcStatus status = ltcExecutableRun(bound, &arguments)) {
    std::string text = ltcStatusMessage(status);
    ltcStatusDestroy(status);
    return text;
  }
  for (int64_t i = 0; i < rows * columns; ++i) {
    float sum = 0;
    for (int64_t k = 0; k < 4; ++k)
      sum += x[i / columns * 4 + k] * w[k * columns + i % columns];
    if (result[i] != sum * float(i) + float(12.0 / double(columns)))
      return "element " + std::to_string(i);
  }
  for (int32_t zero : zeros)
    if (zero)
      return "not zero";
  return "";
}

} // namespace

TEST(Binding, ComputesForAllSizes) {
  std::string error;
  Executable message = generalProgram();
  message.mutable_commands(2)->set_result_types("f32[101,103]");
  LtcExecutable general = loadProgram(message, &error);
  ASSERT_EQ(error, "");
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{2, 2},
                               {3, 5},
                               {9, 64},
                               {101, 103},
                               {2, 1777},
                               {640, 3},
                               {333, 257}}) {
    LtcExecutable bound = bindTo(general, {rows, columns}, &error);
    ASSERT_EQ(error, "");
    LtcTensorInfo parameter = ltcExecutableParameter(bound, 0);
    EXPECT_EQ(parameter.sizes[0], rows);
    EXPECT_EQ(parameter.bytes, size_t(rows * 16));
    EXPECT_EQ(ltcExecutableOutput(bound, 0).type.sizes[1], columns);
    EXPECT_STREQ(ltcExecutableCommand(bound, 2).result_types, "");
    EXPECT_GE(ltcExecutableArenaBytes(bound), size_t(2 * rows * columns * 4));
    for (int threads : {1, 2}) {
      poisonArenas();
      EXPECT_EQ(runBound(bound, rows, columns, threads), "");
    }
    ltcExecutableDestroy(bound);
  }
  ltcExecutableDestroy(general);
}

/// The first runs compute products with the runtime's loops; after some runs,
/// oneDNN's primitives are created.
TEST(Binding, ComputesTheSameInEachRun) {
  std::string error;
  LtcExecutable general = loadProgram(generalProgram(), &error);
  for (auto [rows, columns] :
       {std::pair<int64_t, int64_t>{1024, 1500}, {4000, 1100}, {5, 3}}) {
    LtcExecutable bound = bindTo(general, {rows, columns}, &error);
    ASSERT_EQ(error, "");
    for (int run = 0; run < 12; ++run)
      EXPECT_EQ(runBound(bound, rows, columns, 1 + run % 2), "") << run;
    ltcExecutableDestroy(bound);
  }
  ltcExecutableDestroy(general);
}

TEST(Binding, OutlivesTheGeneralExecutable) {
  std::string error;
  LtcExecutable general = loadProgram(generalProgram(), &error);
  LtcExecutable first = bindTo(general, {7, 130}, &error);
  LtcExecutable second = bindTo(general, {130, 7}, &error);
  ltcExecutableDestroy(general);
  std::string errors[2];
  std::thread other([&] {
    for (int i = 0; i < 100 && errors[1].empty(); ++i)
      errors[1] = runBound(second, 130, 7, 1);
  });
  for (int i = 0; i < 100 && errors[0].empty(); ++i)
    errors[0] = runBound(first, 7, 130, 1);
  other.join();
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1], "");
  ltcExecutableDestroy(first);
  ltcExecutableDestroy(second);
}

TEST(Binding, BindsInSeveralThreads) {
  std::string error;
  LtcExecutable general = loadProgram(generalProgram(), &error);
  std::vector<std::thread> threads;
  std::vector<std::string> errors(3);
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 2; i < 40 && errors[t].empty(); ++i) {
        LtcExecutable bound = bindTo(general, {i, t + 2}, &errors[t]);
        if (bound)
          errors[t] = runBound(bound, i, t + 2, 1);
        ltcExecutableDestroy(bound);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &text : errors)
    EXPECT_EQ(text, "");
  ltcExecutableDestroy(general);
}

TEST(Binding, UsesEveryLibraryCommand) {
  EXPECT_EQ(bindingError(generalLibraryProgram(), {5, 1024}), "");
  // The bias, a constant, has 1024 elements.
  EXPECT_NE(bindingError(generalLibraryProgram(), {5, 1025}).find("bias"),
            std::string::npos);
}

TEST(Binding, ArenaOfStandInsMayBeTooLarge) {
  Executable message = generalProgram();
  message.set_arena_bytes(uint64_t(1) << 50);
  for (Buffer &buffer : *message.mutable_buffers())
    if (buffer.has_arena_offset())
      buffer.set_bytes(uint64_t(1) << 49);
  EXPECT_EQ(bindingError(message, {9, 9}), "");
}

//===----------------------------------------------------------------------===//
// Rejections
//===----------------------------------------------------------------------===//

#define EXPECT_CONTAINS(text, part)                                            \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << text

TEST(Binding, IsRequired) {
  std::string error;
  LtcExecutable general = loadProgram(generalProgram(), &error);
  EXPECT_CONTAINS(runBound(general, kStandIn0, kStandIn1, 1), "must be bound");
  ltcExecutableDestroy(general);
  Executable ordinary = generalProgram();
  ordinary.clear_general();
  EXPECT_CONTAINS(loadError(ordinary), "no general form");
  ordinary.mutable_kernels(0)->clear_numbers();
  EXPECT_CONTAINS(bindingError(ordinary, {2, 2}), "can't be bound");
}

TEST(Binding, RejectsSizes) {
  Executable message = generalProgram();
  EXPECT_CONTAINS(bindingError(message, {3}), "1 sizes, but has 2");
  for (int64_t size :
       {int64_t(-7), INT64_MIN, INT64_MAX, (int64_t(1) << 40) + 1})
    EXPECT_CONTAINS(bindingError(message, {size, 3}), "Size s0 of program");
  // A symbol can be 0 if it isn't a size but, for example, a slice's start.
  EXPECT_EQ(bindingError(message, {0, 3}), "");
  // First, the number of elements exceeds 64 bits; then the temporaries exceed
  // the address space.
  for (int symbol = 0; symbol < 2; ++symbol)
    message.mutable_general()->set_largest_sizes(symbol, int64_t(1) << 40);
  EXPECT_CONTAINS(bindingError(message, {int64_t(1) << 40, int64_t(1) << 40}),
                  "can't be computed");
  EXPECT_CONTAINS(bindingError(message, {int64_t(1) << 30, int64_t(1) << 29}),
                  "can't be bound to these sizes");
}

TEST(Binding, RejectsInconsistentNumbers) {
  // Changes each varying number in turn to a value that the buffers don't
  // allow.
  Executable message = generalProgram();
  int rejected = 0, varying = 0;
  for (int i = 0; i < message.general().places_size(); ++i) {
    if (!message.general().places(i))
      continue;
    ++varying;
    Executable wrong = message;
    uint32_t number = addNumber(wrong, productCode(-1, 1, 1));
    wrong.mutable_general()->set_places(i, number + 1);
    rejected += bindingError(wrong, {9, 11}) != "";
  }
  EXPECT_EQ(rejected, varying);
  EXPECT_GT(varying, 15);
}

TEST(Binding, RejectsUndefinedNumbers) {
  for (const Code &code :
       {Code{CONSTANT, 1, SYMBOL, 0, CONSTANT, -5, ADD, FLOOR_DIVIDE},
        Code{CONSTANT, 1, SYMBOL, 0, CONSTANT, -5, ADD, REMAINDER},
        Code{CONSTANT, INT64_MAX, SYMBOL, 0, ADD},
        Code{CONSTANT, INT64_MAX, SYMBOL, 0, MULTIPLY}}) {
    Executable message = generalProgram();
    addNumber(message, code);
    EXPECT_CONTAINS(bindingError(message, {5, 5}), "can't be computed");
  }
}

TEST(Binding, RejectsOtherOrders) {
  Executable message = generalProgram();
  uint32_t rows = addNumber(message, {SYMBOL, 0}),
           columns = addNumber(message, {SYMBOL, 1});
  message.mutable_general()->add_orders(rows);
  message.mutable_general()->add_orders(columns);
  EXPECT_EQ(bindingError(message, {5, 6}), "");
  for (int64_t size : {6, 7})
    EXPECT_CONTAINS(bindingError(message, {size, 6}), "is less than 6");
}

TEST(Binding, RejectsDamagedForms) {
  auto damaged = [](const std::function<void(Executable &)> &damage) {
    Executable message = generalProgram();
    damage(message);
    return loadError(message);
  };
  EXPECT_CONTAINS(damaged([](Executable &e) { addNumber(e, {ADD}); }),
                  "isn't well-formed");
  EXPECT_CONTAINS(damaged([](Executable &e) { addNumber(e, {SYMBOL, 2}); }),
                  "isn't well-formed");
  EXPECT_CONTAINS(
      damaged([](Executable &e) { e.mutable_general()->add_places(0); }),
      "its general form has");
  EXPECT_CONTAINS(
      damaged([](Executable &e) { e.mutable_general()->set_places(0, 1000); }),
      "refers to number 1000");
  EXPECT_CONTAINS(
      damaged([](Executable &e) { e.mutable_general()->add_orders(0); }),
      "compared numbers");
  EXPECT_CONTAINS(damaged([](Executable &e) {
                    e.mutable_general()->add_orders(0);
                    e.mutable_general()->add_orders(1000);
                  }),
                  "an order refers to number 1000");
  EXPECT_CONTAINS(
      damaged([](Executable &e) { e.mutable_kernels(0)->add_numbers(1000); }),
      "refers to number 1000");
  EXPECT_CONTAINS(
      damaged([](Executable &e) {
        e.mutable_commands(2)->mutable_copy()->mutable_source()->set_buffer(99);
      }),
      "refers to a buffer");
  // An absent operand isn't mistaken for the start of the first buffer.
  Executable message = generalLibraryProgram();
  message.mutable_commands(1)->mutable_copy()->clear_source();
  EXPECT_CONTAINS(loadError(message), "its general form has");
}

//===----------------------------------------------------------------------===//
// Arena plan
//===----------------------------------------------------------------------===//

TEST(ArenaPlan, BuffersThatAreLiveTogetherDoNotOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    ProgramBuilder builder;
    int numBuffers = 1 + int(random() % 30);
    for (int i = 0; i < numBuffers; ++i)
      builder.arena(random() % 4 ? random() % 5000 : 0);
    for (int i = 0; i < 40; ++i)
      builder.copy(random() % numBuffers, random() % numBuffers, 0);
    Executable &message = builder.message;
    auto lifetimes = findLifetimes(message);
    planArena(message, lifetimes);
    uint64_t largestSum = 0;
    for (int command = 0; command < 40; ++command) {
      uint64_t sum = 0;
      for (int i = 0; i < numBuffers; ++i)
        if (lifetimes[i].first <= command && command <= lifetimes[i].last)
          sum += message.buffers(i).bytes();
      largestSum = std::max(largestSum, sum);
    }
    EXPECT_GE(message.arena_bytes(), largestSum);
    for (int i = 0; i < numBuffers; ++i) {
      const Buffer &a = message.buffers(i);
      EXPECT_EQ(a.arena_offset() % 64, 0u);
      EXPECT_LE(a.arena_offset() + a.bytes(), message.arena_bytes());
      for (int j = 0; j < i; ++j) {
        const Buffer &b = message.buffers(j);
        bool live = lifetimes[i].first <= lifetimes[j].last &&
                    lifetimes[j].first <= lifetimes[i].last;
        bool overlap = a.arena_offset() < b.arena_offset() + b.bytes() &&
                       b.arena_offset() < a.arena_offset() + a.bytes();
        EXPECT_FALSE(live && overlap && a.bytes() && b.bytes())
            << "buffers " << i << " and " << j;
      }
    }
  }
}

TEST(ArenaPlan, ReusesMemoryAfterTheLastUse) {
  std::string error;
  LtcExecutable general = loadProgram(generalProgram(/*repeats=*/50), &error);
  LtcExecutable bound = bindTo(general, {64, 64}, &error);
  ASSERT_EQ(error, "");
  EXPECT_EQ(ltcExecutableArenaBytes(bound), size_t(2 * 64 * 64 * 4));
  EXPECT_EQ(runBound(bound, 64, 64, 2), "");
  ltcExecutableDestroy(bound);
  ltcExecutableDestroy(general);
}
