//===- HostCallTest.cpp - Ops that the host computes ----------------------===//

#include "ProgramBuilder.h"

#include <gtest/gtest.h>

#include <string>

using namespace torch_ltc::runtime;
using namespace torch_ltc::runtime::test;

namespace {

void setType(TensorType *type, const HostTensor &tensor) {
  type->set_dtype(tensor.dtype);
  for (int64_t size : tensor.sizes)
    type->add_sizes(size);
}

/// One call of the op `scale` on four numbers.
Executable callingProgram() {
  ProgramBuilder builder;
  HostTensor four(FLOAT32, {4});
  uint32_t in = builder.parameter(four);
  uint32_t out = builder.output(four);
  Command *command = builder.message.add_commands();
  command->set_location("train.py:3");
  HostCall *call = command->mutable_host();
  call->set_op("scale");
  call->set_arguments("t;d0x1p1");
  setType(call->add_input_types(), four);
  setRef(call->add_inputs(), in);
  setType(call->add_output_types(), four);
  setRef(call->add_outputs(), out);
  return builder.message;
}

LtcStatus scale(const LtcHostCall *call) {
  if (std::string(call->op) != "scale" ||
      std::string(call->arguments) != "t;d0x1p1" ||
      std::string(call->location) != "train.py:3" || call->num_inputs != 1 ||
      call->num_outputs != 1 || call->inputs[0].rank != 1)
    return ltcStatusCreate("The call isn't what was stored.");
  for (int64_t i = 0; i < call->inputs[0].sizes[0]; ++i) {
    float value = static_cast<const float *>(call->inputs[0].data)[i];
    if (value < 0)
      return ltcStatusCreate("scale: a negative number.");
    static_cast<float *>(call->outputs[0].data)[i] = 2 * value;
  }
  return nullptr;
}

std::string run(LtcExecutable executable, float (&in)[4], float (&out)[4]) {
  void *parameters[] = {in};
  void *outputs[] = {out};
  LtcRunArguments arguments{};
  arguments.parameters = parameters;
  arguments.outputs = outputs;
  arguments.num_threads = 1;
  std::string error;
  if (LtcStatus status = ltcExecutableRun(executable, &arguments)) {
    error = ltcStatusMessage(status);
    ltcStatusDestroy(status);
  }
  return error;
}

TEST(HostCall, ComputesWithTheHostsFunction) {
  ltcSetHostFunction(scale);
  Program program(callingProgram());
  float in[4] = {1, 2, 3, 4}, out[4] = {};
  EXPECT_EQ(run(program.executable, in, out), "");
  EXPECT_EQ(out[3], 8);
}

TEST(HostCall, PassesTheHostsErrorOn) {
  ltcSetHostFunction(scale);
  Program program(callingProgram());
  float in[4] = {1, -2, 3, 4}, out[4] = {};
  EXPECT_NE(run(program.executable, in, out).find("scale: a negative number."),
            std::string::npos);
}

TEST(HostCall, NeedsAFunction) {
  ltcSetHostFunction(nullptr);
  std::string error;
  EXPECT_EQ(loadProgram(callingProgram(), &error), nullptr);
  EXPECT_NE(error.find("PyTorch's kernel"), std::string::npos) << error;
}

TEST(HostCall, IsVerified) {
  ltcSetHostFunction(scale);
  Executable message = callingProgram();
  message.mutable_commands(0)
      ->mutable_host()
      ->mutable_input_types(0)
      ->set_sizes(0, 5);
  std::string error;
  EXPECT_EQ(loadProgram(message, &error), nullptr);
  EXPECT_NE(error.find("input"), std::string::npos) << error;
}

/// A program whose host call writes its output over its input, a donated
/// parameter.
Executable updatingProgram() {
  Executable message = callingProgram();
  message.mutable_outputs(0)->set_donated_parameter(0);
  HostCall *call = message.mutable_commands(0)->mutable_host();
  *call->mutable_outputs(0) = call->inputs(0);
  call->set_updates_input(true);
  return message;
}

TEST(HostCall, UpdatesItsInput) {
  ltcSetHostFunction(scale);
  Program program(updatingProgram());
  float in[4] = {1, 2, 3, 4};
  EXPECT_EQ(run(program.executable, in, in), "");
  EXPECT_EQ(in[3], 8);
}

TEST(HostCall, DoesNotOverwriteAnInputByMistake) {
  ltcSetHostFunction(scale);
  Executable message = updatingProgram();
  message.mutable_commands(0)->mutable_host()->set_updates_input(false);
  std::string error;
  EXPECT_EQ(loadProgram(message, &error), nullptr);
  EXPECT_NE(error.find("overwrites"), std::string::npos) << error;
  message = callingProgram();
  message.mutable_commands(0)->mutable_host()->set_updates_input(true);
  EXPECT_EQ(loadProgram(message, &error), nullptr);
  EXPECT_NE(error.find("isn't its last input"), std::string::npos) << error;
}

} // namespace
