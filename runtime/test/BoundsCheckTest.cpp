//===- BoundsCheckTest.cpp - Indices out of range fail a run --------------===//

#include "ProgramBuilder.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace torch_ltc::runtime;
using namespace torch_ltc::runtime::test;

namespace {

/// A program that checks 5 indices and copies parameter 1 to the output to
/// which parameter 2 is donated. The copy follows the check, or precedes it if
/// `copyFirst` is set.
Executable checkingProgram(DType dtype, bool copyFirst = false) {
  ProgramBuilder builder;
  HostTensor indices(dtype, {5}), weight(FLOAT32, {2});
  uint32_t checked = builder.parameter(indices);
  uint32_t source = builder.parameter(weight);
  builder.parameter(weight);
  uint32_t out = builder.output(weight);
  builder.message.mutable_outputs(0)->set_donated_parameter(2);
  if (copyFirst)
    builder.copy(source, out, 8);
  builder.boundsCheck(checked, indices, -3, 3);
  builder.message.mutable_commands()->rbegin()->set_name("aten.index");
  if (!copyFirst)
    builder.copy(source, out, 8);
  return builder.message;
}

struct Outcome {
  std::string error;
  int parametersIntact = -1;
  float donated[2] = {7, 7};
};

template <typename Index>
Outcome run(const Executable &message, std::vector<Index> indices) {
  Program program(message);
  Outcome outcome;
  float weight[2] = {1, 2};
  const void *parameters[] = {indices.data(), weight, outcome.donated};
  float other[2];
  void *outputs[] = {nullptr, other};
  LtcRunArguments arguments{};
  arguments.parameters = const_cast<void *const *>(
      reinterpret_cast<const void *const *>(parameters));
  arguments.outputs = outputs;
  arguments.num_threads = 1;
  arguments.parameters_intact = &outcome.parametersIntact;
  if (LtcStatus status = ltcExecutableRun(program.executable, &arguments)) {
    outcome.error = ltcStatusMessage(status);
    ltcStatusDestroy(status);
  }
  return outcome;
}

TEST(BoundsCheck, FindsZeroDivisors) {
  Executable message = checkingProgram(INT64);
  for (Command &command : *message.mutable_commands())
    if (command.has_bounds_check())
      command.mutable_bounds_check()->set_nonzero(true);
  EXPECT_EQ(run<int64_t>(message, {9, -2, 7, 1, -1}).error, "");
  EXPECT_NE(
      run<int64_t>(message, {9, -2, 0, 1, -1}).error.find("ZeroDivisionError"),
      std::string::npos);
}

TEST(BoundsCheck, PassesWhatIsInRange) {
  Outcome wide = run<int64_t>(checkingProgram(INT64), {-3, 2, 0, 1, -1});
  EXPECT_EQ(wide.error, "");
  EXPECT_EQ(wide.donated[1], 2);
  EXPECT_EQ(run<int32_t>(checkingProgram(INT32), {2, 2, -3, 0, 0}).error, "");
}

TEST(BoundsCheck, NamesTheFirstWrongIndex) {
  for (int64_t wrong : {int64_t(3), int64_t(-4), INT64_MIN, INT64_MAX}) {
    std::string error =
        run<int64_t>(checkingProgram(INT64), {0, 1, wrong, 2, 9}).error;
    EXPECT_NE(error.find("'aten.index'"), std::string::npos) << error;
    EXPECT_NE(error.find("index " + std::to_string(wrong) +
                         " (element 2 of 5) is out of range: it must be at "
                         "least -3 and below 3"),
              std::string::npos)
        << error;
  }
  EXPECT_NE(run<int32_t>(checkingProgram(INT32), {0, 0, 0, 0, 3}).error, "");
}

TEST(BoundsCheck, SaysWhetherParametersAreIntact) {
  std::vector<int64_t> wrong(5, 8);
  Outcome early = run(checkingProgram(INT64), wrong);
  EXPECT_EQ(early.parametersIntact, 1);
  EXPECT_EQ(early.donated[0], 7);
  Outcome late = run(checkingProgram(INT64, /*copyFirst=*/true), wrong);
  EXPECT_EQ(late.parametersIntact, 0);
  EXPECT_EQ(late.donated[0], 1);
}

TEST(BoundsCheck, LeavesParametersIntactAfterOtherWrites) {
  ProgramBuilder builder;
  HostTensor indices(INT64, {5}), weight(FLOAT32, {2});
  uint32_t checked = builder.parameter(indices);
  uint32_t source = builder.parameter(weight);
  uint32_t donated = builder.parameter(weight);
  uint32_t out = builder.output(weight), other = builder.output(weight);
  builder.message.mutable_outputs(0)->set_donated_parameter(2);
  // Reads the donated parameter, and writes to memory of its own.
  builder.copy(donated, other, 8);
  builder.fill(other, 8);
  builder.boundsCheck(checked, indices, -3, 3);
  builder.copy(source, out, 8);
  Outcome outcome = run(builder.message, std::vector<int64_t>(5, 8));
  EXPECT_NE(outcome.error, "");
  EXPECT_EQ(outcome.parametersIntact, 1);
  EXPECT_EQ(outcome.donated[0], 7);
}

TEST(BoundsCheck, IsVerified) {
  auto errorOf = [](auto damage) {
    Executable message = checkingProgram(INT64);
    damage(*message.mutable_commands(0)->mutable_bounds_check());
    std::string error;
    EXPECT_EQ(loadProgram(message, &error), nullptr);
    return error;
  };
  EXPECT_NE(errorOf([](BoundsCheck &c) { c.set_count(6); }).find("covers"),
            std::string::npos);
  EXPECT_NE(errorOf([](BoundsCheck &c) { c.set_count(-1); }).find("checks -1"),
            std::string::npos);
  EXPECT_NE(
      errorOf([](BoundsCheck &c) { c.set_dtype(FLOAT32); }).find("have dtype"),
      std::string::npos);
  EXPECT_NE(errorOf([](BoundsCheck &c) { c.clear_indices(); }).find("missing"),
            std::string::npos);
}

} // namespace
