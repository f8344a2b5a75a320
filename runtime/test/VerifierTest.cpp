//===- VerifierTest.cpp - Corrupt executables are rejected ----------------===//
//
// Each test corrupts fields of goodProgram and expects an error that names the
// corrupt part.
//
//===----------------------------------------------------------------------===//

#include "EveryCommand.h"
#include "ExecutableBytes.h"

#include <gtest/gtest.h>

#include <functional>

using namespace torch_ltc::runtime;
using namespace torch_ltc::runtime::test;

namespace {

/// Expects that the corrupt program is rejected with an error that contains
/// `expected`.
void expectRejected(const std::function<void(Executable &)> &damage,
                    const std::string &expected) {
  Executable message = goodProgram();
  damage(message);
  std::string error;
  LtcExecutable executable = loadProgram(message, &error);
  EXPECT_EQ(executable, nullptr) << expected;
  EXPECT_NE(error.find(expected), std::string::npos)
      << "expected '" << expected << "' in: " << error;
  ltcExecutableDestroy(executable);
}

#define DAMAGE(expected, ...)                                                  \
  do {                                                                         \
    SCOPED_TRACE(#__VA_ARGS__);                                                \
    expectRejected([](Executable &e) { __VA_ARGS__; }, expected);              \
  } while (false)

} // namespace

TEST(Verifier, GoodProgramRuns) {
  Program program(goodProgram());
  std::vector<float> input(512, 1), weight(108, 1), result(192);
  LtcScalar scalar = {0};
  ASSERT_EQ(program.run({input.data(), weight.data()},
                        {result.data(), nullptr, nullptr}, 2, {scalar}),
            "");
  EXPECT_EQ(result[5], 18); // inside
  EXPECT_EQ(result[0], 8);  // in the corner
  EXPECT_EQ(input[0], 0);   // donated, and filled after the convolution
  EXPECT_EQ(input[511], 1);
}

TEST(Verifier, Rubbish) {
  LtcExecutable executable = nullptr;
  for (std::string bytes :
       {std::string("\xff\xff\xff"), std::string(), std::string(1000, 'x')}) {
    LtcStatus status =
        ltcExecutableLoad(bytes.data(), bytes.size(), &executable);
    ASSERT_NE(status, nullptr);
    EXPECT_EQ(executable, nullptr);
    ltcStatusDestroy(status);
  }
}

TEST(Verifier, EveryTruncationIsRejected) {
  std::string bytes = serializeExecutable(goodProgram());
  for (size_t size = 0; size < bytes.size(); ++size) {
    LtcExecutable executable = nullptr;
    LtcStatus status = ltcExecutableLoad(bytes.data(), size, &executable);
    EXPECT_NE(status, nullptr) << size;
    EXPECT_EQ(executable, nullptr) << size;
    ltcStatusDestroy(status);
  }
}

TEST(Verifier, FlippedBytesAreRejected) {
  // Changes each byte, including those of machine code.
  std::string bytes = serializeExecutable(goodProgram());
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int flip : {0x01, 0x80, 0x7f, 0xff}) {
      std::string damaged = bytes;
      damaged[i] ^= flip;
      LtcExecutable executable = nullptr;
      LtcStatus status =
          ltcExecutableLoad(damaged.data(), damaged.size(), &executable);
      EXPECT_NE(status, nullptr) << i;
      EXPECT_EQ(executable, nullptr) << i;
      ltcStatusDestroy(status);
      ltcExecutableDestroy(executable);
    }
}

TEST(Verifier, Header) {
  DAMAGE("format version 99", e.set_format_version(99));
  DAMAGE("format version 0", e.clear_format_version());
  DAMAGE("this machine's", e.set_cpu("x86-64 +sse2,+amx-tf32,+nothing"));
  Executable message = goodProgram();
  message.set_cpu(std::string(ltcTargetCpuName()) + " " +
                  ltcTargetCpuFeatures());
  Program host(message);
  EXPECT_NE(host.executable, nullptr);
  message.set_cpu("x86-64");
  Program baseline(message);
  EXPECT_NE(baseline.executable, nullptr);
}

TEST(Verifier, Signature) {
  DAMAGE("parameter 0 has the unknown dtype",
         e.mutable_parameters(0)->mutable_type()->set_dtype(DType(99)));
  DAMAGE("parameter 1 has a negative size",
         e.mutable_parameters(1)->mutable_type()->set_sizes(0, -6));
  DAMAGE("more than 2^63",
         e.mutable_parameters(1)->mutable_type()->set_sizes(0, INT64_MAX));
  DAMAGE("scalar 0 has the unknown kind", e.set_scalars(0, ScalarKind(5)));
  DAMAGE("output 0 has the unknown dtype",
         e.mutable_outputs(0)->mutable_type()->set_dtype(DType(99)));
}

TEST(Verifier, Outputs) {
  DAMAGE("parameter 9, but the program has 2",
         e.mutable_outputs(1)->set_forwarded_parameter(9));
  DAMAGE("parameter 2, but the program has 2",
         e.mutable_outputs(2)->set_donated_parameter(2));
  DAMAGE("both donated and forwarded",
         e.mutable_outputs(1)->set_donated_parameter(1));
  DAMAGE("its parameter 0 has",
         e.mutable_outputs(1)->set_forwarded_parameter(0));
  DAMAGE("is int32, but its forwarded",
         e.mutable_outputs(1)->mutable_type()->set_dtype(INT32));
  DAMAGE("donated and forwarded", {
    *e.add_outputs() = e.outputs(1);
    e.mutable_outputs(3)->clear_forwarded_parameter();
    e.mutable_outputs(3)->set_donated_parameter(1);
  });
  DAMAGE("donated to two outputs", *e.add_outputs() = e.outputs(2));
}

TEST(Verifier, Kernels) {
  DAMAGE("has no symbol", e.mutable_kernels(0)->clear_symbol());
  DAMAGE("has no object code", e.mutable_kernels(0)->clear_object());
  DAMAGE("two kernels have the symbol", *e.add_kernels() = e.kernels(0));
}

TEST(Verifier, Buffers) {
  DAMAGE("buffer 0 has no place", e.mutable_buffers(0)->clear_place());
  DAMAGE("refers to parameter 2, but the program has 2",
         e.mutable_buffers(0)->set_parameter(2));
  DAMAGE("refers to output 3, but the program has 3",
         e.mutable_buffers(2)->set_output(3));
  DAMAGE("refers to scalar 1, but the program has 1",
         e.mutable_buffers(3)->set_scalar(1));
  DAMAGE("refers to constant 1, but the program has 1",
         e.mutable_buffers(4)->set_constant(1));
  DAMAGE("buffer 0 has 4096 bytes, but its parameter 0 has 2048",
         e.mutable_buffers(0)->set_bytes(4096));
  DAMAGE("its scalar 0 has 8", e.mutable_buffers(3)->set_bytes(16));
  DAMAGE("its constant 0 has 64", e.mutable_buffers(4)->set_bytes(65));
  DAMAGE("unaligned arena offset 8", e.mutable_buffers(5)->set_arena_offset(8));
  DAMAGE("exceeds the arena", e.mutable_buffers(5)->set_arena_offset(64));
  DAMAGE("temporaries need", e.set_arena_bytes(~uint64_t(0)));
  DAMAGE("exceeds the arena",
         e.mutable_buffers(5)->set_arena_offset(uint64_t(-64)));
  DAMAGE("exceeds the arena", e.mutable_buffers(5)->set_bytes(uint64_t(-1)));
  DAMAGE("exceeds the arena", e.set_arena_bytes(1023));
}

TEST(Verifier, KernelCalls) {
#define CALL e.mutable_commands(kKernelCommand)->mutable_kernel()
  DAMAGE("calls kernel 1, but the program has 1", CALL->set_kernel(1));
  DAMAGE("trip count 11 exceeds the kernel's 10", CALL->set_trip_count(11));
  DAMAGE("2 arguments, but its kernel takes 3",
         CALL->mutable_arguments()->RemoveLast());
  DAMAGE("4 arguments, but its kernel takes 3", CALL->add_arguments());
  DAMAGE("operand argument covers 2048 bytes at offset 4",
         CALL->mutable_arguments(0)->set_offset(4));
  DAMAGE("operand argument covers 2048 bytes",
         CALL->mutable_arguments(0)->set_buffer(kWeight));
  DAMAGE("operand argument writes buffer 6, which is read-only",
         e.mutable_kernels(0)->mutable_operands(2)->set_written(true));
  DAMAGE("is negative", CALL->set_trip_count(-1));
  DAMAGE("is negative", CALL->set_grain(-1));
  DAMAGE("refers to buffer 8, but the program has 8",
         CALL->mutable_arguments(0)->set_buffer(8));
  DAMAGE("at offset 2049", CALL->mutable_arguments(0)->set_offset(2049));
  DAMAGE("it has no call", e.mutable_commands(kKernelCommand)->clear_call());
#undef CALL
}

TEST(Verifier, Matmuls) {
#define CALL e.mutable_commands(kMatmulCommand)->mutable_matmul()
  DAMAGE("support dtype", CALL->set_dtype(BOOL));
  DAMAGE("support dtype", CALL->set_dtype(DType(77)));
  DAMAGE("size -1", CALL->set_m(-1));
  DAMAGE("out of range", CALL->set_n(INT64_MAX));
  DAMAGE("out of range", CALL->set_batch(int64_t(1) << 40));
  DAMAGE("operand a covers", CALL->set_k(1000));
  DAMAGE("operand b covers", CALL->set_n(4));
  DAMAGE("operand a covers", CALL->mutable_a()->set_offset(1020));
  DAMAGE("starts inside an element", CALL->mutable_a()->set_offset(258));
  DAMAGE("operand a is missing", CALL->clear_a());
  DAMAGE("operand b is missing", CALL->clear_b());
  DAMAGE("operand c is missing", CALL->clear_c());
  DAMAGE("operand bias covers", CALL->mutable_bias()->set_offset(56));
  DAMAGE("operand bias refers to buffer 42",
         CALL->mutable_bias()->set_buffer(42));
  DAMAGE("c writes buffer 4, which is read-only",
         CALL->mutable_c()->set_buffer(kConstant));
  DAMAGE("c overwrites operand a", CALL->mutable_a()->set_offset(0));
  DAMAGE("smaller than a matrix", CALL->set_batch(2),
         CALL->set_batch_stride_a(1));
  DAMAGE("smaller than a matrix", CALL->set_batch_stride_b(-4));
  DAMAGE("", CALL->set_batch(int64_t(1) << 30),
         CALL->set_batch_stride_a(INT64_MAX / 2));
#undef CALL
}

TEST(Verifier, Convolutions) {
#define CALL e.mutable_commands(kConvolutionCommand)->mutable_convolution()
  DAMAGE("unknown kind", CALL->set_kind(ConvolutionCall::Kind(3)));
  DAMAGE("support dtype", CALL->set_dtype(BOOL));
  DAMAGE("has 2 dimensions, not 3 to 5",
         CALL->mutable_input_sizes()->Truncate(2));
  DAMAGE("differ in rank", CALL->mutable_weight_sizes()->Truncate(3));
  DAMAGE("differ in rank", CALL->add_stride(1));
  DAMAGE("stride 0", CALL->set_stride(0, 0));
  DAMAGE("padding -1", CALL->set_padding(1, -1));
  DAMAGE("dilation 0", CALL->set_dilation(0, 0));
  DAMAGE("input size", CALL->set_input_sizes(0, INT64_MAX));
  DAMAGE("groups", CALL->set_groups(0));
  DAMAGE("groups", CALL->set_groups(3));
  DAMAGE("the weight has 2 input channels", CALL->set_groups(1));
  DAMAGE("the output is", CALL->set_output_sizes(1, 5));
  DAMAGE("has size 5, not 4", CALL->set_output_sizes(3, 5));
  DAMAGE("has size 3, not 4", CALL->set_output_sizes(3, 3));
  DAMAGE("empty window", CALL->set_weight_sizes(2, 0));
  DAMAGE("operand input covers", CALL->mutable_input()->set_offset(4));
  DAMAGE("operand weight is missing", CALL->clear_weight());
  DAMAGE("operand output covers", CALL->mutable_output()->set_buffer(4));
  DAMAGE("read-only", CALL->set_kind(ConvolutionCall::BACKWARD_WEIGHT));
  DAMAGE("has no bias", CALL->set_kind(ConvolutionCall::BACKWARD_INPUT));
  DAMAGE("operand bias covers", CALL->mutable_bias()->set_offset(44));
  DAMAGE("is read-only", CALL->mutable_output()->set_buffer(kWeight),
         CALL->mutable_output_sizes()->Set(0, 0),
         CALL->mutable_input_sizes()->Set(0, 0), CALL->clear_bias(),
         CALL->set_kind(ConvolutionCall::BACKWARD_WEIGHT));
#undef CALL
}

TEST(Verifier, Attentions) {
#define CALL e.mutable_commands(kAttentionCommand)->mutable_attention()
  DAMAGE("size 0 of an attention", CALL->set_batch(0));
  DAMAGE("size -1 of an attention", CALL->set_keys(-1));
  DAMAGE("size 0 of an attention", CALL->set_width(0));
  DAMAGE("out of range", CALL->set_length(int64_t(1) << 40));
  DAMAGE("more than 2^63 bytes", CALL->set_length(1 << 27),
         CALL->set_width(1 << 27), CALL->set_heads(1 << 27));
  DAMAGE("operand key covers", CALL->mutable_key()->set_offset(2024));
  DAMAGE("operand query is missing", CALL->clear_query());
  DAMAGE("operand value is missing", CALL->clear_value());
  DAMAGE("operand output is missing", CALL->clear_output());
  DAMAGE("operand log_sum is missing", CALL->clear_log_sum());
  DAMAGE("operand grad_output is missing", CALL->clear_grad_output());
  DAMAGE("operand grad_query is missing", CALL->clear_grad_query());
  DAMAGE("operand grad_key is missing", CALL->clear_grad_key());
  DAMAGE("operand grad_value is missing", CALL->clear_grad_value());
  DAMAGE("operand mask covers", CALL->set_mask_head_stride(1000));
  DAMAGE("stride -1", CALL->set_mask_row_stride(-1));
  DAMAGE("out of range", CALL->set_mask_head_stride(INT64_MAX / 4));
  DAMAGE("starts inside an element", CALL->mutable_mask()->set_offset(2));
  DAMAGE("read-only", CALL->mutable_grad_key()->set_buffer(kConstant),
         CALL->mutable_grad_key()->set_offset(0));
  DAMAGE("output writes buffer 1, which is read-only",
         CALL->set_backward(false), CALL->mutable_output()->set_buffer(1));
  DAMAGE("overwrites", CALL->mutable_grad_value()->set_offset(0));
#undef CALL
}

TEST(Verifier, CopiesAndFills) {
#define CALL e.mutable_commands(kCopyCommand)->mutable_copy()
  DAMAGE("operand source covers", CALL->set_bytes(65));
  DAMAGE("operand source is missing", CALL->clear_source());
  DAMAGE("operand destination is missing", CALL->clear_destination());
  DAMAGE("overwrites", CALL->mutable_source()->set_buffer(kTemporary));
  DAMAGE("read-only", CALL->mutable_destination()->set_buffer(kOutput2));
  DAMAGE("read-only", CALL->mutable_destination()->set_buffer(kWeight));
#undef CALL
#define CALL e.mutable_commands(kFillCommand)->mutable_fill()
  DAMAGE("operand destination covers", CALL->set_bytes(1 << 20));
  DAMAGE("read-only", CALL->mutable_destination()->set_buffer(kScalar),
         CALL->set_bytes(8));
#undef CALL
}

TEST(Verifier, OverlapThroughDonation) {
  // The donated output uses parameter 0's buffer.
  DAMAGE("overwrites", {
    CopyCall *copy = e.mutable_commands(kCopyCommand)->mutable_copy();
    copy->mutable_source()->set_buffer(kInput);
    copy->mutable_destination()->set_buffer(kDonatedOutput);
  });
}
