//===- PreparedCommand.cpp - Commands ready to run ------------------------===//

#include "PreparedCommand.h"

#include "DataType.h"
#include "Diagnostics.h"

using namespace torch_ltc::runtime;

llvm::Expected<PreparedCommandPtr>
torch_ltc::runtime::prepareCommand(const Command &command,
                                   const Preparation &preparation) {
  switch (command.call_case()) {
#define RUNTIME_CALL(Name, field)                                              \
  case Command::k##Name:                                                       \
    return prepare##Name(command, preparation);
#include "Calls.def"
  case Command::CALL_NOT_SET:
    break;
  }
  return failure("A command of the program has no call.");
}

namespace {

std::string join(const google::protobuf::RepeatedField<int64_t> &sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

// `details` returns what displayName appends to the name of a call's field.

template <typename Call> std::string details(const Call &) { return ""; }

std::string details(const KernelCall &call) {
  return " " + std::to_string(call.kernel());
}

std::string details(const MatmulCall &call) {
  std::string batch =
      call.batch() == 1 ? "" : std::to_string(call.batch()) + "x";
  return llvm::formatv(" {0}{1}x{2}x{3} {4}", batch, call.m(), call.n(),
                       call.k(), dtypeName(call.dtype()));
}

const char *kindSuffix(ConvolutionCall::Kind kind) {
  switch (kind) {
  case ConvolutionCall::BACKWARD_INPUT:
    return "_backward_input";
  case ConvolutionCall::BACKWARD_WEIGHT:
    return "_backward_weight";
  default:
    return "";
  }
}

std::string details(const ConvolutionCall &call) {
  return llvm::formatv("{0} {1} * {2} {3}", kindSuffix(call.kind()),
                       join(call.input_sizes()), join(call.weight_sizes()),
                       dtypeName(call.dtype()));
}

std::string details(const AttentionCall &call) {
  return llvm::formatv("{0} {1}x{2}x{3}x{4}x{5}",
                       call.backward() ? "_backward" : "",
                       call.batch() * call.heads(), call.length(), call.keys(),
                       call.width(), call.value_width());
}

std::string details(const CopyCall &call) {
  return " " + std::to_string(call.bytes()) + " bytes";
}

std::string details(const FillCall &call) {
  return " " + std::to_string(call.bytes()) + " bytes";
}

std::string details(const HostCall &call) { return " " + call.op(); }

} // namespace

std::string torch_ltc::runtime::displayName(const Command &command) {
  if (!command.name().empty())
    return command.name();
  switch (command.call_case()) {
#define RUNTIME_CALL(Name, field)                                              \
  case Command::k##Name:                                                       \
    return #field + details(command.field());
#include "Calls.def"
  case Command::CALL_NOT_SET:
    break;
  }
  return "nothing";
}
