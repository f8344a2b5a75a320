//===- PreparedCommand.cpp - Commands ready to run ------------------------===//

#include "PreparedCommand.h"

#include "DataType.h"
#include "Diagnostics.h"

using namespace torch_ltc::runtime;

llvm::Expected<PreparedCommandPtr>
torch_ltc::runtime::prepareCommand(const Command &command,
                                   const KernelLibrary &kernels,
                                   const KernelTables &tables, int numThreads) {
  switch (command.call_case()) {
  case Command::kKernel:
    return prepareKernelCall(command.kernel(), kernels, tables, numThreads);
  case Command::kMatmul:
    return prepareMatmul(command.matmul(), numThreads);
  case Command::kConvolution:
    return prepareConvolution(command.convolution(), numThreads);
  case Command::kAttention:
    return prepareAttention(command.attention(), numThreads);
  case Command::kCopy:
    return prepareCopy(command.copy(), numThreads);
  case Command::kFill:
    return prepareFill(command.fill(), numThreads);
  case Command::kBoundsCheck:
    return prepareBoundsCheck(command);
  case Command::kHost:
    return prepareHostCall(command);
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

const char *kindName(ConvolutionCall::Kind kind) {
  switch (kind) {
  case ConvolutionCall::BACKWARD_INPUT:
    return "convolution_backward_input";
  case ConvolutionCall::BACKWARD_WEIGHT:
    return "convolution_backward_weight";
  default:
    return "convolution";
  }
}

} // namespace

std::string torch_ltc::runtime::displayName(const Command &command) {
  if (!command.name().empty())
    return command.name();
  switch (command.call_case()) {
  case Command::kKernel:
    return "kernel " + std::to_string(command.kernel().kernel());
  case Command::kMatmul: {
    const MatmulCall &call = command.matmul();
    std::string batch =
        call.batch() == 1 ? "" : std::to_string(call.batch()) + "x";
    return llvm::formatv("matmul {0}{1}x{2}x{3} {4}", batch, call.m(), call.n(),
                         call.k(), dtypeName(call.dtype()));
  }
  case Command::kConvolution: {
    const ConvolutionCall &call = command.convolution();
    return llvm::formatv("{0} {1} * {2} {3}", kindName(call.kind()),
                         join(call.input_sizes()), join(call.weight_sizes()),
                         dtypeName(call.dtype()));
  }
  case Command::kAttention: {
    const AttentionCall &call = command.attention();
    return llvm::formatv("attention{0} {1}x{2}x{3}x{4}x{5}",
                         call.backward() ? "_backward" : "",
                         call.batch() * call.heads(), call.length(),
                         call.keys(), call.width(), call.value_width());
  }
  case Command::kCopy:
    return "copy " + std::to_string(command.copy().bytes()) + " bytes";
  case Command::kFill:
    return "fill " + std::to_string(command.fill().bytes()) + " bytes";
  case Command::kBoundsCheck:
    return "bounds check";
  case Command::kHost:
    return "host " + command.host().op();
  case Command::CALL_NOT_SET:
    break;
  }
  return "nothing";
}
