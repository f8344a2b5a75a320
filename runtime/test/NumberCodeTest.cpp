//===- NumberCodeTest.cpp - Numbers that depend on sizes ------------------===//

#include "NumberCode.h"
#include "ExecutableNumbers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>

using namespace torch_ltc::runtime;

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

namespace {

using Code = std::vector<int64_t>;

Number numberOf(const Code &code) {
  Number number;
  number.mutable_code()->Add(code.begin(), code.end());
  return number;
}

/// The code's value for s0 = 7 and s1 = 20.
std::optional<int64_t> valueOf(const Code &code) {
  Number number = numberOf(code);
  EXPECT_TRUE(isWellFormed(number, 2));
  return evaluate(number, {7, 20});
}

std::optional<int64_t> valueOf(int64_t a, NumberOp op, int64_t b) {
  return valueOf({CONSTANT, a, CONSTANT, b, op});
}

template <typename To, typename From> To bitsOf(From value) {
  To result;
  static_assert(sizeof(To) == sizeof(From));
  std::memcpy(&result, &value, sizeof(result));
  return result;
}

} // namespace

TEST(NumberCode, Evaluates) {
  EXPECT_EQ(valueOf({SYMBOL, 0, SYMBOL, 1, MULTIPLY, CONSTANT, -3, ADD}), 137);
  EXPECT_EQ(valueOf(-7, FLOOR_DIVIDE, 2), -4);
  EXPECT_EQ(valueOf(7, FLOOR_DIVIDE, 2), 3);
  EXPECT_EQ(valueOf(-7, CEIL_DIVIDE, 2), -3);
  EXPECT_EQ(valueOf(7, CEIL_DIVIDE, 2), 4);
  EXPECT_EQ(valueOf(INT64_MAX, CEIL_DIVIDE, 2), int64_t(1) << 62);
  EXPECT_EQ(valueOf(-7, REMAINDER, 4), 1);
  EXPECT_EQ(valueOf(-7, MINIMUM, 4), -7);
  EXPECT_EQ(valueOf(-7, MAXIMUM, 4), 4);
}

TEST(NumberCode, FloatsAreRoundedOnce) {
  int64_t odd = (int64_t(1) << 53) + 1;
  EXPECT_EQ(valueOf({CONSTANT, odd, FLOAT64_BITS}),
            bitsOf<int64_t>(double(odd)));
  EXPECT_EQ(valueOf({CONSTANT, -3, FLOAT32_BITS}),
            int64_t(bitsOf<uint32_t>(-3.0f)));
  int64_t third = bitsOf<int64_t>(1.0);
  EXPECT_EQ(valueOf(third, FLOAT64_QUOTIENT_BITS, 3),
            bitsOf<int64_t>(1.0 / 3.0));
  EXPECT_EQ(valueOf(third, FLOAT32_QUOTIENT_BITS, 3),
            int64_t(bitsOf<uint32_t>(float(1.0 / 3.0))));
}

TEST(NumberCode, UndefinedValues) {
  for (NumberOp op : {FLOOR_DIVIDE, CEIL_DIVIDE, REMAINDER,
                      FLOAT32_QUOTIENT_BITS, FLOAT64_QUOTIENT_BITS})
    EXPECT_EQ(valueOf(5, op, 0), std::nullopt);
  EXPECT_EQ(valueOf(INT64_MIN, FLOOR_DIVIDE, -1), std::nullopt);
  EXPECT_EQ(valueOf(INT64_MAX, ADD, 1), std::nullopt);
  EXPECT_EQ(valueOf(INT64_MIN, MULTIPLY, -1), std::nullopt);
}

TEST(NumberCode, WellFormed) {
  for (const Code &code :
       {Code{}, Code{CONSTANT}, Code{SYMBOL}, Code{SYMBOL, 2}, Code{SYMBOL, -1},
        Code{ADD}, Code{CONSTANT, 1, ADD}, Code{CONSTANT, 1, CONSTANT, 2},
        Code{FLOAT32_BITS}, Code{-1}, Code{NumberOp_MAX + 1},
        Code{CONSTANT, 1, CONSTANT, 2, ADD, CONSTANT}})
    EXPECT_FALSE(isWellFormed(numberOf(code), 2));
}

//===----------------------------------------------------------------------===//
// The numbers of an executable
//===----------------------------------------------------------------------===//

namespace {

/// Integers that don't depend on sizes, or that bindSizes computes itself.
const std::set<std::string> kNeverVary = {"Buffer.arena_offset",
                                          "Buffer.constant",
                                          "Buffer.output",
                                          "Buffer.parameter",
                                          "Buffer.scalar",
                                          "BufferRef.buffer",
                                          "Command.nodes",
                                          "ConvolutionCall.groups",
                                          "Executable.arena_bytes",
                                          "Executable.checksum",
                                          "Executable.format_version",
                                          "GeneralForm.checks",
                                          "GeneralForm.largest_sizes",
                                          "GeneralForm.orders",
                                          "GeneralForm.places",
                                          "GeneralForm.scalars",
                                          "Kernel.numbers",
                                          "KernelCall.kernel",
                                          "Number.code",
                                          "Output.donated_parameter",
                                          "Output.forwarded_parameter",
                                          "Output.updated_parameter"};

struct ProtoField {
  std::string type, name;
  uint32_t number;
};

/// Parses the fields of each message of executable.proto, because the lite
/// runtime has no descriptors.
std::map<std::string, std::vector<ProtoField>> readProto() {
  std::map<std::string, std::vector<ProtoField>> messages;
  std::ifstream file(EXECUTABLE_PROTO);
  std::vector<std::string> scopes;
  static const std::regex kOpening(R"(\s*(message|enum|oneof) (\w+) \{.*)"),
      kField(R"(\s*(repeated |optional )?(\w+) (\w+) = (\d+);.*)"),
      kClosing(R"(\s*\}.*)");
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (std::regex_match(line, match, kOpening))
      scopes.push_back(match[1] == "oneof" ? scopes.back() : match[2].str());
    else if (std::regex_match(line, match, kField) && !scopes.empty())
      messages[scopes.back()].push_back(
          {match[2], match[3], uint32_t(std::stoul(match[4]))});
    else if (std::regex_match(line, kClosing) && !scopes.empty())
      scopes.pop_back();
  }
  return messages;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += char(value | 0x80);
  return bytes += char(value);
}

bool isVisited(std::string bytes) {
  Executable executable;
  EXPECT_TRUE(executable.ParseFromString(bytes));
  bool visited = false;
  forEachNumber(executable, [&](int64_t &number) { visited |= number == 77; });
  return visited;
}

class Coverage {
public:
  /// Expects that forEachNumber visits each integer of `message` unless it is
  /// in kNeverVary. `wrap` makes an executable from the bytes of this message.
  void check(const std::string &message,
             const std::function<std::string(std::string)> &wrap) {
    static const std::regex kInteger("s?u?(int|fixed)(32|64)");
    for (const ProtoField &field : messages[message]) {
      std::string name = message + "." + field.name;
      if (messages.count(field.type)) {
        check(field.type, [&](const std::string &bytes) {
          return wrap(varint(field.number << 3 | 2) + varint(bytes.size()) +
                      bytes);
        });
      } else if (std::regex_match(field.type, kInteger)) {
        seen.insert(name);
        if (field.type != "fixed64")
          EXPECT_EQ(isVisited(wrap(varint(field.number << 3) + varint(77))),
                    kNeverVary.count(name) == 0)
              << name;
      }
    }
  }

  std::map<std::string, std::vector<ProtoField>> messages = readProto();
  std::set<std::string> seen;
};

} // namespace

TEST(ExecutableNumbers, EveryIntegerIsVisitedOrNeverVaries) {
  Coverage coverage;
  coverage.check("Executable", [](std::string bytes) { return bytes; });
  EXPECT_GT(coverage.seen.size(), 50u);
  for (const std::string &name : kNeverVary)
    EXPECT_TRUE(coverage.seen.count(name)) << name;
}

TEST(ExecutableNumbers, VisitsInAFixedOrderAndStores) {
  Executable executable;
  executable.add_parameters()->mutable_type()->add_sizes(5);
  executable.add_buffers()->set_bytes(20);
  Command *command = executable.add_commands();
  command->mutable_fill()->mutable_destination()->set_offset(4);
  command->mutable_fill()->set_bytes(16);
  std::vector<int64_t> seen;
  forEachNumber(executable, [&](int64_t &number) {
    seen.push_back(number);
    number += 100;
  });
  EXPECT_EQ(seen, (std::vector<int64_t>{5, 20, 4, 16}));
  EXPECT_EQ(executable.commands(0).fill().bytes(), 116u);
}

TEST(ExecutableNumbers, AbsentOperandsStayAbsent) {
  Executable executable;
  executable.add_commands()->mutable_matmul();
  executable.add_commands()->mutable_copy();
  forEachNumber(executable, [](int64_t &) {});
  EXPECT_FALSE(executable.commands(0).matmul().has_a());
  EXPECT_FALSE(executable.commands(1).copy().has_source());
}

TEST(ExecutableNumbers, SizesOfConstantsDoNotVary) {
  Executable executable;
  Buffer *buffer = executable.add_buffers();
  buffer->set_constant(0);
  buffer->set_bytes(77);
  EXPECT_FALSE(isVisited(executable.SerializeAsString()));
}
