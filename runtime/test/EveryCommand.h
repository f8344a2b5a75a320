//===- EveryCommand.h - A program with most kinds of commands -------------===//

#ifndef TORCH_LTC_RUNTIME_TEST_EVERYCOMMAND_H
#define TORCH_LTC_RUNTIME_TEST_EVERYCOMMAND_H

#include "IRCompiler.h"
#include "ProgramBuilder.h"

namespace torch_ltc::runtime::test {

// The commands of goodProgram.
enum {
  kKernelCommand,
  kMatmulCommand,
  kConvolutionCommand,
  kCopyCommand,
  kFillCommand,
  kAttentionCommand
};
// The buffers of goodProgram.
enum {
  kInput,
  kWeight,
  kResult,
  kScalar,
  kConstant,
  kTemporary,
  kOutput2,
  kDonatedOutput
};

inline const std::string &nothingObject() {
  static const std::string object =
      compileIR("define void @nothing(ptr %b, i64 %i, i64 %j) { ret void }");
  return object;
}

inline void addMatmul(ProgramBuilder &builder) {
  MatmulCall *call = builder.matmul();
  call->set_dtype(FLOAT32);
  call->set_batch(1);
  call->set_m(4);
  call->set_n(3);
  call->set_k(5);
  setRef(call->mutable_a(), kTemporary, 256);
  setRef(call->mutable_b(), kConstant);
  setRef(call->mutable_c(), kTemporary);
  setRef(call->mutable_bias(), kConstant);
}

inline void addConvolution(ProgramBuilder &builder) {
  ConvolutionCall *call = builder.convolution();
  call->set_kind(ConvolutionCall::FORWARD);
  call->set_dtype(FLOAT32);
  for (int64_t size : {2, 4, 8, 8})
    call->add_input_sizes(size);
  for (int64_t size : {6, 2, 3, 3})
    call->add_weight_sizes(size);
  for (int64_t size : {2, 6, 4, 4})
    call->add_output_sizes(size);
  for (int i = 0; i < 2; ++i) {
    call->add_stride(2);
    call->add_padding(1);
    call->add_dilation(1);
  }
  call->set_groups(2);
  setRef(call->mutable_input(), kInput);
  setRef(call->mutable_weight(), kWeight);
  setRef(call->mutable_output(), kResult);
  setRef(call->mutable_bias(), kConstant);
}

inline void addAttention(ProgramBuilder &builder) {
  AttentionCall *call = builder.message.add_commands()->mutable_attention();
  call->set_backward(true);
  call->set_batch(1);
  call->set_heads(2);
  call->set_length(4);
  call->set_keys(3);
  call->set_width(2);
  call->set_value_width(1);
  call->set_mask_row_stride(3);
  setRef(call->mutable_query(), kInput);
  setRef(call->mutable_key(), kInput);
  setRef(call->mutable_value(), kInput);
  setRef(call->mutable_mask(), kInput);
  setRef(call->mutable_output(), kInput);
  setRef(call->mutable_log_sum(), kInput);
  setRef(call->mutable_grad_output(), kInput);
  setRef(call->mutable_grad_query(), kTemporary);
  setRef(call->mutable_grad_key(), kTemporary, 64);
  setRef(call->mutable_grad_value(), kTemporary, 128);
}

inline Executable goodProgram() {
  ProgramBuilder builder;
  builder.parameter(HostTensor(FLOAT32, {2, 4, 8, 8}), "input");
  builder.parameter(HostTensor(FLOAT32, {6, 2, 3, 3}), "weight");
  builder.output(HostTensor(FLOAT32, {2, 6, 4, 4}));
  builder.scalar(FLOAT);
  builder.constant(std::string(64, '\0'));
  builder.arena(1024);
  builder.output(HostTensor(FLOAT32, {6, 2, 3, 3}));
  builder.output(HostTensor(FLOAT32, {2, 4, 8, 8}));
  builder.message.mutable_outputs(1)->set_forwarded_parameter(1);
  builder.message.mutable_outputs(2)->set_donated_parameter(0);
  uint32_t kernel = builder.kernel("nothing", nothingObject());
  builder.callKernel(kernel, {kInput, kScalar, kOutput2}, 10, 1);
  addMatmul(builder);
  addConvolution(builder);
  builder.copy(kConstant, kTemporary, 64);
  builder.fill(kDonatedOutput, 512);
  addAttention(builder);
  return builder.message;
}

} // namespace torch_ltc::runtime::test

#endif // TORCH_LTC_RUNTIME_TEST_EVERYCOMMAND_H
