//===- GeneralProgram.h - General executables for the tests ---------------===//

#ifndef TORCH_LTC_RUNTIME_TEST_GENERALPROGRAM_H
#define TORCH_LTC_RUNTIME_TEST_GENERALPROGRAM_H

#include "ExecutableNumbers.h"
#include "IRCompiler.h"
#include "ProgramBuilder.h"

#include <cstring>
#include <map>

namespace torch_ltc::runtime::test {

// Stand-ins of the two symbols. Numbers that don't depend on a symbol aren't
// multiples of its stand-in.
constexpr int64_t kStandIn0 = 101, kStandIn1 = 103;

using Code = std::vector<int64_t>;

/// The code of `factor` * s0 ^ `power0` * s1 ^ `power1`.
inline Code productCode(int64_t factor, int power0, int power1) {
  Code code = {CONSTANT, factor};
  for (int i = 0; i < power0 + power1; ++i)
    code.insert(code.end(), {SYMBOL, i < power0 ? 0 : 1, MULTIPLY});
  return code;
}

inline uint32_t addNumber(Executable &executable, const Code &code) {
  GeneralForm *form = executable.mutable_general();
  form->add_numbers()->mutable_code()->Add(code.begin(), code.end());
  return form->numbers_size() - 1;
}

/// Makes each number that is a multiple of a stand-in depend on the stand-in's
/// symbol.
inline void generalize(Executable &executable) {
  for (int symbol = 0; symbol < 2; ++symbol)
    executable.mutable_general()->add_largest_sizes(int64_t(1) << 30);
  std::map<int64_t, uint32_t> known;
  forEachNumber(executable, [&](int64_t &number) {
    int64_t factor = number;
    int powers[] = {0, 0};
    for (auto [symbol, standIn] : {std::pair(0, kStandIn0), {1, kStandIn1}})
      for (; factor && factor % standIn == 0; factor /= standIn)
        ++powers[symbol];
    uint32_t place = 0;
    if (factor != number) {
      if (!known.count(number))
        known[number] = 1 + addNumber(executable, productCode(factor, powers[0],
                                                              powers[1]));
      place = known[number];
    }
    executable.mutable_general()->add_places(place);
  });
}

/// buffers[1][i] = buffers[0][i] * i + table[0], where table[0] holds the bits
/// of a float.
inline const std::string &tableKernel() {
  static const std::string object = compileIR(R"(
define void @table(ptr %buffers, i64 %begin, i64 %end) {
entry:
  %in = load ptr, ptr %buffers
  %slot1 = getelementptr ptr, ptr %buffers, i64 1
  %out = load ptr, ptr %slot1
  %slot2 = getelementptr ptr, ptr %buffers, i64 2
  %table = load ptr, ptr %slot2
  %bits = load i64, ptr %table
  %low = trunc i64 %bits to i32
  %addend = bitcast i32 %low to float
  %empty = icmp sge i64 %begin, %end
  br i1 %empty, label %exit, label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %src = getelementptr float, ptr %in, i64 %i
  %x = load float, ptr %src
  %factor = sitofp i64 %i to float
  %y = fmul float %x, %factor
  %z = fadd float %y, %addend
  %dst = getelementptr float, ptr %out, i64 %i
  store float %z, ptr %dst
  %next = add i64 %i, 1
  %done = icmp sge i64 %next, %end
  br i1 %done, label %exit, label %loop
exit:
  ret void
}
)");
  return object;
}

/// product [s0, s1] = x [s0, 4] * w [4, s1].
inline void addProduct(ProgramBuilder &builder, uint32_t x, uint32_t w,
                       uint32_t product) {
  MatmulCall *call = builder.matmul();
  call->set_dtype(FLOAT32);
  call->set_batch(1);
  call->set_m(kStandIn0);
  call->set_n(kStandIn1);
  call->set_k(4);
  setRef(call->mutable_a(), x);
  setRef(call->mutable_b(), w);
  setRef(call->mutable_c(), product);
}

/// A program that computes result = (x [s0, 4] * w [4, s1]) * index + 12 / s1
/// and zeros [s0], `repeats` times in a row.
inline Executable generalProgram(int repeats = 1) {
  ProgramBuilder builder;
  HostTensor whole(FLOAT32, {kStandIn0, kStandIn1}), rows(INT32, {kStandIn0});
  uint32_t x = builder.parameter(HostTensor(FLOAT32, {kStandIn0, 4}), "x");
  uint32_t w = builder.parameter(HostTensor(FLOAT32, {4, kStandIn1}), "w");
  uint32_t result = builder.output(whole), zeros = builder.output(rows);
  uint32_t kernel = builder.kernel("table", tableKernel());
  for (int i = 0; i < repeats; ++i) {
    uint32_t product = builder.arena(whole.bytes.size());
    uint32_t scaled = builder.arena(whole.bytes.size());
    addProduct(builder, x, w, product);
    builder.callKernel(kernel, {product, scaled}, kStandIn0 * kStandIn1, 1000);
    builder.copy(scaled, result, whole.bytes.size());
    builder.fill(zeros, rows.bytes.size());
  }
  generalize(builder.message);
  double addend = 12;
  int64_t bits;
  std::memcpy(&bits, &addend, sizeof(bits));
  builder.message.mutable_kernels(0)->add_numbers(addNumber(
      builder.message, {CONSTANT, bits, SYMBOL, 1, FLOAT32_QUOTIENT_BITS}));
  return builder.message;
}

/// A program with a product, copies, a fill and a bounds check. It has no
/// kernels, because their code relies on the numbers of the general form, which
/// MutationTest.cpp changes.
inline Executable generalLibraryProgram() {
  ProgramBuilder builder;
  HostTensor whole(FLOAT32, {kStandIn0, 4}), numbers(INT32, {kStandIn0});
  uint32_t x = builder.parameter(whole, "x");
  uint32_t indices = builder.parameter(numbers, "indices");
  uint32_t w = builder.parameter(HostTensor(FLOAT32, {4, kStandIn1}), "w");
  uint32_t bias = builder.constant(std::string(4096, '\0'));
  uint64_t bytes = kStandIn0 * kStandIn1 * 4;
  uint32_t result = builder.output(HostTensor(FLOAT32, {kStandIn0, kStandIn1}));
  uint32_t zeros = builder.output(HostTensor(UINT8, {4096}));
  uint32_t temporary = builder.arena(bytes), other = builder.arena(bytes);
  addProduct(builder, x, w, temporary);
  MatmulCall *call = builder.message.mutable_commands(0)->mutable_matmul();
  setRef(call->mutable_bias(), bias);
  builder.copy(temporary, other, bytes);
  builder.copy(other, result, bytes);
  builder.copy(bias, zeros, 4096);
  builder.fill(zeros, kStandIn0);
  builder.boundsCheck(indices, numbers, 0, kStandIn0);
  generalize(builder.message);
  return builder.message;
}

} // namespace torch_ltc::runtime::test

#endif // TORCH_LTC_RUNTIME_TEST_GENERALPROGRAM_H
