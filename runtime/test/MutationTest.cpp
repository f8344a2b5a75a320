//===- MutationTest.cpp - Mutated executables are rejected or harmless ----===//
//
// Mutates random fields of the stored form of programs, without knowledge of
// their meaning, and repairs the checksum. Each mutated program is loaded and
// run in a subprocess, on memory that ends at an inaccessible page. The field
// `kernels` isn't mutated: it describes the code and can't be checked.
//
//===----------------------------------------------------------------------===//

#include "EveryCommand.h"
#include "ExecutableBytes.h"
#include "GeneralProgram.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace torch_ltc::runtime;
using namespace torch_ltc::runtime::test;

namespace {

constexpr int kMutants = 400; // of each program
constexpr uint32_t kKernelsField = 5;

//===----------------------------------------------------------------------===//
// The wire format
//===----------------------------------------------------------------------===//

struct Field {
  uint32_t number = 0;
  uint32_t wireType = 0;
  uint64_t value = 0; // of varint, fixed64 and fixed32
  std::string bytes;  // of length-delimited fields that aren't messages
  std::vector<Field> fields;
  bool isMessage = false;
};
using Fields = std::vector<Field>;

bool readVarint(const std::string &bytes, size_t &at, uint64_t &value) {
  value = 0;
  for (int shift = 0; at < bytes.size() && shift < 64; shift += 7) {
    unsigned char byte = bytes[at++];
    value |= uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80)
      return true;
  }
  return false;
}

void writeVarint(std::string &bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    bytes += char(value | 0x80);
  bytes += char(value);
}

bool readFixed(const std::string &bytes, size_t &at, size_t size,
               uint64_t &value) {
  if (bytes.size() - at < size)
    return false;
  std::memcpy(&value, bytes.data() + at, size);
  at += size;
  return true;
}

/// Returns false if the bytes aren't a message. Text that is by chance a
/// valid message is treated as one, which does no harm.
bool readFields(const std::string &bytes, Fields &fields, bool isTop) {
  for (size_t at = 0; at < bytes.size();) {
    Field field;
    uint64_t tag;
    if (!readVarint(bytes, at, tag) || tag >> 3 == 0)
      return false;
    field.number = uint32_t(tag >> 3);
    field.wireType = tag & 7;
    if (field.wireType == 0) {
      if (!readVarint(bytes, at, field.value))
        return false;
    } else if (field.wireType == 1 || field.wireType == 5) {
      if (!readFixed(bytes, at, field.wireType == 1 ? 8 : 4, field.value))
        return false;
    } else if (field.wireType == 2) {
      uint64_t size;
      if (!readVarint(bytes, at, size) || size > bytes.size() - at)
        return false;
      field.bytes = bytes.substr(at, size);
      at += size;
      bool isLeaf = size == 0 || (isTop && field.number == kKernelsField);
      field.isMessage =
          !isLeaf && readFields(field.bytes, field.fields, /*isTop=*/false);
    } else {
      return false;
    }
    fields.push_back(std::move(field));
  }
  return true;
}

std::string writeFields(const Fields &fields) {
  std::string bytes;
  for (const Field &field : fields) {
    writeVarint(bytes, uint64_t(field.number) << 3 | field.wireType);
    if (field.wireType == 0)
      writeVarint(bytes, field.value);
    else if (field.wireType != 2)
      bytes.append(reinterpret_cast<const char *>(&field.value),
                   field.wireType == 1 ? 8 : 4);
    else {
      std::string inner =
          field.isMessage ? writeFields(field.fields) : field.bytes;
      writeVarint(bytes, inner.size());
      bytes += inner;
    }
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

class Mutator {
public:
  explicit Mutator(uint32_t seed) : generator(seed) {}

  void mutate(Fields &top) {
    for (int count = 1 + below(3); count > 0; --count)
      alter(top, /*isTop=*/true);
  }

private:
  int below(size_t limit) { return int(generator() % limit); }

  void alter(Fields &fields, bool isTop) {
    if (fields.empty())
      return;
    size_t index = below(fields.size());
    Field &field = fields[index];
    if (isTop && field.number == kKernelsField)
      return;
    if (field.isMessage && !field.fields.empty() && below(8) != 0)
      return alter(field.fields, /*isTop=*/false);
    switch (below(10)) {
    case 0:
      fields.erase(fields.begin() + index);
      return;
    case 1: {
      Field copy = field;
      fields.insert(fields.begin() + below(fields.size()), std::move(copy));
      return;
    }
    case 2:
      field.number = 1 + below(21);
      return;
    case 3:
      std::swap(field, fields[below(fields.size())]);
      return;
    default:
      if (field.wireType == 2 && !field.isMessage)
        alterBytes(field.bytes);
      else
        field.value = newValue(field.value);
    }
  }

  /// Changes a byte of a packed list of numbers or of text.
  void alterBytes(std::string &bytes) {
    if (bytes.empty())
      return;
    char &byte = bytes[below(bytes.size())];
    byte = char(newValue(uint64_t(byte)) & (below(2) ? 0x7f : 0xff));
  }

  uint64_t newValue(uint64_t old) {
    const uint64_t values[] = {0,
                               1,
                               2,
                               old + 1,
                               old - 1,
                               old * 2,
                               old / 2,
                               old + 64,
                               old - 64,
                               -old,
                               4096,
                               uint64_t(below(300)),
                               uint64_t(1) << below(64),
                               uint64_t(INT32_MAX),
                               uint64_t(INT64_MAX),
                               uint64_t(INT64_MIN),
                               ~uint64_t(0)};
    return values[below(std::size(values))];
  }

  std::mt19937 generator;
};

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Adds 1 to the elements [begin, end) of its second argument.
const char *kCountIR = R"(
define void @count(ptr %buffers, i64 %begin, i64 %end) {
entry:
  %slot = getelementptr ptr, ptr %buffers, i64 1
  %out = load ptr, ptr %slot
  %empty = icmp sge i64 %begin, %end
  br i1 %empty, label %exit, label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %place = getelementptr i64, ptr %out, i64 %i
  %x = load i64, ptr %place
  %y = add i64 %x, 1
  store i64 %y, ptr %place
  %next = add i64 %i, 1
  %done = icmp sge i64 %next, %end
  br i1 %done, label %exit, label %loop
exit:
  ret void
}
)";

/// A program with copies, a kernel call, a bounds check and a host call.
Executable kernelProgram() {
  ProgramBuilder builder;
  HostTensor numbers(INT64, {64});
  uint32_t in = builder.parameter(numbers, "numbers");
  uint32_t out = builder.output(numbers);
  uint32_t temporary = builder.arena(64 * 8);
  uint32_t kernel = builder.kernel("count", compileIR(kCountIR));
  builder.copy(in, temporary, 64 * 8);
  builder.callKernel(kernel, {in, temporary}, 64, 8);
  builder.boundsCheck(in, numbers, -5, 5);
  Command *command = builder.message.add_commands();
  HostCall *call = command->mutable_host();
  call->set_op("fill");
  TensorType *type = call->add_output_types();
  type->set_dtype(INT64);
  type->add_sizes(64);
  setRef(call->add_outputs(), out);
  builder.copy(temporary, out, 64 * 8);
  return builder.message;
}

/// Writes all of each output and reads all of each input.
LtcStatus touchAll(const LtcHostCall *call) {
  [[maybe_unused]] static volatile char seen;
  auto bytesOf = [](const LtcHostTensor &tensor) {
    size_t bytes = tensor.dtype == LTC_DTYPE_INT64 ? 8 : 1;
    for (size_t i = 0; i < tensor.rank; ++i)
      bytes *= size_t(tensor.sizes[i]);
    return bytes;
  };
  for (size_t i = 0; i < call->num_inputs; ++i)
    for (size_t k = 0; k < bytesOf(call->inputs[i]); ++k)
      seen = static_cast<const char *>(call->inputs[i].data)[k];
  for (size_t i = 0; i < call->num_outputs; ++i)
    std::memset(call->outputs[i].data, 1, bytesOf(call->outputs[i]));
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// Memory that ends at an inaccessible page; null for more than 64 MB.
void *guardedMemory(size_t bytes) {
  constexpr size_t page = 4096;
  size_t rounded = (bytes + page - 1) / page * page + page;
  if (bytes > (size_t(64) << 20))
    return nullptr;
  void *memory = mmap(nullptr, rounded, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *end = static_cast<char *>(memory) + rounded - page;
  mprotect(end, page, PROT_NONE);
  return end - bytes;
}

/// Loads the program, binds it if it is general, and runs it. Returns whether
/// it could be loaded and bound. To be called in a subprocess, which may crash.
bool loadAndRun(const std::string &bytes, bool isGeneral) {
  LtcExecutable executable = nullptr;
  LtcStatus status = ltcExecutableLoad(bytes.data(), bytes.size(), &executable);
  ltcStatusDestroy(status);
  if (!executable)
    return false;
  if (isGeneral) {
    const int64_t symbols[] = {9, 1024};
    LtcSizes sizes{symbols, 2, nullptr, 0};
    LtcExecutable bound = nullptr;
    ltcStatusDestroy(ltcExecutableBind(executable, &sizes, &bound));
    ltcExecutableDestroy(executable);
    if (!bound)
      return false;
    executable = bound;
  }
  std::vector<void *> parameters, outputs;
  for (size_t i = 0; i < ltcExecutableNumParameters(executable); ++i)
    parameters.push_back(
        guardedMemory(ltcExecutableParameter(executable, i).bytes));
  for (size_t i = 0; i < ltcExecutableNumOutputs(executable); ++i)
    outputs.push_back(
        guardedMemory(ltcExecutableOutput(executable, i).type.bytes));
  std::vector<LtcScalar> scalars(ltcExecutableNumScalars(executable));
  LtcRunArguments arguments{};
  arguments.parameters = parameters.data();
  arguments.scalars = scalars.data();
  arguments.outputs = outputs.data();
  arguments.num_threads = 1;
  ltcStatusDestroy(ltcExecutableRun(executable, &arguments));
  ltcExecutableDestroy(executable);
  return true;
}

/// Returns 0 if the program is rejected, 1 if it runs, and -1 if it crashes or
/// doesn't finish.
int outcomeOf(const std::string &bytes, bool isGeneral) {
  pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    _exit(loadAndRun(bytes, isGeneral) ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) && WEXITSTATUS(status) <= 1 ? WEXITSTATUS(status)
                                                       : -1;
}

std::string stored(const Fields &fields) {
  // Field `checksum` isn't part of the message that it covers.
  std::string bytes = writeFields(fields);
  Executable nothing;
  std::string end = serializeExecutable(nothing);
  uint64_t checksum = llvm::xxh3_64bits(bytes);
  std::memcpy(end.data() + 1, &checksum, sizeof(checksum));
  return bytes + end;
}

void expectHarmless(const Executable &program) {
  ltcSetHostFunction(&touchAll);
  Fields fields;
  ASSERT_TRUE(readFields(program.SerializeAsString(), fields, /*isTop=*/true));
  ASSERT_EQ(outcomeOf(stored(fields), program.has_general()), 1) << "unaltered";
  int numRun = 0;
  for (uint32_t seed = 0; seed < kMutants; ++seed) {
    Fields altered = fields;
    Mutator(seed).mutate(altered);
    int outcome = outcomeOf(stored(altered), program.has_general());
    EXPECT_GE(outcome, 0) << "seed " << seed;
    numRun += outcome == 1;
  }
  // Some mutations are rejected and some run.
  EXPECT_GT(numRun, kMutants / 20);
  EXPECT_LT(numRun, kMutants * 19 / 20);
}

} // namespace

TEST(Mutation, LibraryCommands) { expectHarmless(goodProgram()); }

TEST(Mutation, GeneralForms) { expectHarmless(generalLibraryProgram()); }

TEST(Mutation, KernelsChecksAndHostCalls) { expectHarmless(kernelProgram()); }
