//===- ProgramBuilder.cpp - Executables for the tests ---------------------===//

#include "ProgramBuilder.h"

#include "Arena.h"
#include "DataType.h"
#include "ExecutableBytes.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace torch_ltc::runtime;
using namespace torch_ltc::runtime::test;

//===----------------------------------------------------------------------===//
// HostTensor
//===----------------------------------------------------------------------===//

HostTensor::HostTensor(DType dtype, std::vector<int64_t> sizes)
    : dtype(dtype), sizes(std::move(sizes)) {
  bytes.resize(numElements() * elementBytes(dtype));
}

int64_t HostTensor::numElements() const {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

template <typename T>
static T elementAt(const std::vector<char> &bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
static void putElement(std::vector<char> &bytes, int64_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

double HostTensor::get(int64_t index) const {
  switch (dtype) {
  case UINT8:
  case BOOL:
    return elementAt<uint8_t>(bytes, index);
  case INT8:
    return elementAt<int8_t>(bytes, index);
  case INT16:
    return elementAt<int16_t>(bytes, index);
  case INT32:
    return elementAt<int32_t>(bytes, index);
  case INT64:
    return double(elementAt<int64_t>(bytes, index));
  case FLOAT16:
    return double(elementAt<_Float16>(bytes, index));
  case BFLOAT16: {
    uint32_t bits = uint32_t(elementAt<uint16_t>(bytes, index)) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  case FLOAT32:
    return elementAt<float>(bytes, index);
  default:
    return elementAt<double>(bytes, index);
  }
}

void HostTensor::set(int64_t index, double value) {
  switch (dtype) {
  case UINT8:
  case BOOL:
    return putElement(bytes, index, uint8_t(int64_t(value)));
  case INT8:
    return putElement(bytes, index, int8_t(int64_t(value)));
  case INT16:
    return putElement(bytes, index, int16_t(int64_t(value)));
  case INT32:
    return putElement(bytes, index, int32_t(int64_t(value)));
  case INT64:
    return putElement(bytes, index, int64_t(value));
  case FLOAT16:
    return putElement(bytes, index, _Float16(value));
  case BFLOAT16: {
    // Truncates, which is exact for values that bfloat16 represents.
    float wide = float(value);
    uint32_t bits;
    std::memcpy(&bits, &wide, sizeof(bits));
    return putElement(bytes, index, uint16_t(bits >> 16));
  }
  case FLOAT32:
    return putElement(bytes, index, float(value));
  default:
    return putElement(bytes, index, value);
  }
}

void HostTensor::fillRandom(std::mt19937 &generator, int largest) {
  bool isUnsigned = dtype == UINT8 || dtype == BOOL;
  std::uniform_int_distribution<int> values(isUnsigned ? 0 : -largest, largest);
  for (int64_t i = 0; i < numElements(); ++i)
    set(i, values(generator));
}

//===----------------------------------------------------------------------===//
// ProgramBuilder
//===----------------------------------------------------------------------===//

ProgramBuilder::ProgramBuilder() {
  message.set_format_version(FORMAT_VERSION);
  message.set_name("test");
}

static void setType(TensorType *type, const HostTensor &tensor) {
  type->set_dtype(tensor.dtype);
  for (int64_t size : tensor.sizes)
    type->add_sizes(size);
}

uint32_t ProgramBuilder::parameter(const HostTensor &tensor,
                                   const std::string &name) {
  Parameter *parameter = message.add_parameters();
  setType(parameter->mutable_type(), tensor);
  parameter->set_name(name);
  Buffer *buffer = message.add_buffers();
  buffer->set_parameter(message.parameters_size() - 1);
  buffer->set_bytes(tensor.bytes.size());
  return message.buffers_size() - 1;
}

uint32_t ProgramBuilder::output(const HostTensor &tensor) {
  setType(message.add_outputs()->mutable_type(), tensor);
  Buffer *buffer = message.add_buffers();
  buffer->set_output(message.outputs_size() - 1);
  buffer->set_bytes(tensor.bytes.size());
  return message.buffers_size() - 1;
}

uint32_t ProgramBuilder::scalar(ScalarKind kind) {
  message.add_scalars(kind);
  Buffer *buffer = message.add_buffers();
  buffer->set_scalar(message.scalars_size() - 1);
  buffer->set_bytes(8);
  return message.buffers_size() - 1;
}

uint32_t ProgramBuilder::constant(const std::string &bytes) {
  message.add_constants(bytes);
  Buffer *buffer = message.add_buffers();
  buffer->set_constant(message.constants_size() - 1);
  buffer->set_bytes(bytes.size());
  return message.buffers_size() - 1;
}

uint32_t ProgramBuilder::arena(uint64_t bytes) {
  uint64_t offset = (message.arena_bytes() + 63) / 64 * 64;
  Buffer *buffer = message.add_buffers();
  buffer->set_arena_offset(offset);
  buffer->set_bytes(bytes);
  message.set_arena_bytes(offset + bytes);
  return message.buffers_size() - 1;
}

uint32_t ProgramBuilder::kernel(const std::string &symbol,
                                const std::string &object) {
  Kernel *kernel = message.add_kernels();
  kernel->set_symbol(symbol);
  kernel->set_object(object);
  return message.kernels_size() - 1;
}

KernelCall *ProgramBuilder::callKernel(uint32_t kernel,
                                       const std::vector<uint32_t> &buffers,
                                       int64_t tripCount, int64_t grain) {
  KernelCall *call = message.add_commands()->mutable_kernel();
  call->set_kernel(kernel);
  Kernel *callee = message.mutable_kernels(kernel);
  bool isFirst = callee->operands_size() == 0;
  for (uint32_t index : buffers) {
    setRef(call->add_arguments(), index);
    if (!isFirst)
      continue;
    const Buffer &buffer = message.buffers(index);
    KernelOperand *operand = callee->add_operands();
    operand->set_bytes(buffer.bytes());
    operand->set_written(
        buffer.has_arena_offset() ||
        (buffer.has_output() &&
         !message.outputs(buffer.output()).has_forwarded_parameter()));
  }
  callee->set_trip_count(std::max(callee->trip_count(), tripCount));
  call->set_trip_count(tripCount);
  call->set_grain(grain);
  return call;
}

MatmulCall *ProgramBuilder::matmul() {
  return message.add_commands()->mutable_matmul();
}

ConvolutionCall *ProgramBuilder::convolution() {
  return message.add_commands()->mutable_convolution();
}

CopyCall *ProgramBuilder::copy(uint32_t source, uint32_t destination,
                               uint64_t bytes) {
  CopyCall *call = message.add_commands()->mutable_copy();
  setRef(call->mutable_source(), source);
  setRef(call->mutable_destination(), destination);
  call->set_bytes(bytes);
  return call;
}

FillCall *ProgramBuilder::fill(uint32_t destination, uint64_t bytes) {
  FillCall *call = message.add_commands()->mutable_fill();
  setRef(call->mutable_destination(), destination);
  call->set_bytes(bytes);
  return call;
}

BoundsCheck *ProgramBuilder::boundsCheck(uint32_t indices,
                                         const HostTensor &tensor,
                                         int64_t lower, int64_t upper) {
  BoundsCheck *check = message.add_commands()->mutable_bounds_check();
  check->set_dtype(tensor.dtype);
  check->set_count(tensor.numElements());
  check->set_lower(lower);
  check->set_upper(upper);
  setRef(check->mutable_indices(), indices);
  return check;
}

void torch_ltc::runtime::test::setRef(BufferRef *ref, uint32_t buffer,
                                      uint64_t offset) {
  ref->set_buffer(buffer);
  ref->set_offset(offset);
}

void torch_ltc::runtime::test::poisonArenas(size_t bytes) {
  auto arena = ArenaPool::process().acquire(bytes);
  ASSERT_TRUE(bool(arena));
  std::memset((*arena)->data(), 0xff, (*arena)->size());
  ArenaPool::process().release(std::move(*arena));
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

static std::string takeMessage(LtcStatus status) {
  if (!status)
    return "";
  std::string text = ltcStatusMessage(status);
  ltcStatusDestroy(status);
  EXPECT_FALSE(text.empty());
  return text;
}

LtcExecutable torch_ltc::runtime::test::loadProgram(const Executable &message,
                                                    std::string *error) {
  std::string bytes = serializeExecutable(message);
  LtcExecutable executable = nullptr;
  *error =
      takeMessage(ltcExecutableLoad(bytes.data(), bytes.size(), &executable));
  return executable;
}

Program::Program(const Executable &message) {
  std::string error;
  executable = loadProgram(message, &error);
  EXPECT_EQ(error, "");
}

Program::~Program() { ltcExecutableDestroy(executable); }

std::string Program::run(const std::vector<void *> &parameters,
                         const std::vector<void *> &outputs, int numThreads,
                         const std::vector<LtcScalar> &scalars,
                         int64_t *nanoseconds, const uint64_t *contents) {
  if (!executable)
    return "not loaded";
  LtcRunArguments arguments{};
  arguments.parameters = parameters.data();
  arguments.scalars = scalars.data();
  arguments.outputs = outputs.data();
  arguments.num_threads = numThreads;
  arguments.command_nanoseconds = nanoseconds;
  arguments.parameter_contents = contents;
  return takeMessage(ltcExecutableRun(executable, &arguments));
}
