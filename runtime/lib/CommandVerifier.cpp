//===- CommandVerifier.cpp - Checks of the command list -------------------===//

#include "DataType.h"
#include "Diagnostics.h"
#include "ExecutableVerifier.h"

#include <optional>
#include <string>
#include <vector>

using namespace torch_ltc::runtime;

namespace {

enum class Access { Read, Write };

/// Bytes that a command reads or writes.
struct Extent {
  const char *name;
  uint32_t buffer;
  uint64_t begin, end;
  Access access;
};

class CommandVerifier {
public:
  CommandVerifier(const Executable &executable, const Command &command)
      : executable(executable), command(command) {}

  llvm::Error verify();

private:
  llvm::Error verifyCall(const KernelCall &call);
  llvm::Error verifyCall(const MatmulCall &call);
  llvm::Error verifyCall(const ConvolutionCall &call);
  llvm::Error verifyCall(const AttentionCall &call);
  llvm::Error verifyCall(const CopyCall &call);
  llvm::Error verifyCall(const FillCall &call);
  llvm::Error verifyCall(const BoundsCheck &call);
  llvm::Error verifyCall(const HostCall &call);

  /// Checks that the `bytes` bytes at `ref` exist, are aligned to `element`
  /// bytes and permit `access`, and records them.
  llvm::Error use(const char *name, bool present, const BufferRef &ref,
                  uint64_t bytes, uint64_t element, Access access);
  bool isWritable(const Buffer &buffer) const;

  /// Location of a buffer's bytes: buffers with equal `place` and `index` are
  /// in the same block of memory, in which this buffer starts at `base`.
  struct Memory {
    Buffer::PlaceCase place;
    uint32_t index;
    uint64_t base;
  };
  Memory memoryOf(uint32_t index) const;

  /// Checks that no written operand overlaps another one: library calls may
  /// write an operand while they read another.
  llvm::Error checkNoOverlap() const;

  const Executable &executable;
  const Command &command;
  std::vector<Extent> extents;
};

bool CommandVerifier::isWritable(const Buffer &buffer) const {
  if (buffer.has_arena_offset())
    return true;
  if (buffer.has_output())
    return !executable.outputs(buffer.output()).has_forwarded_parameter();
  if (!buffer.has_parameter())
    return false;
  for (const Output &output : executable.outputs())
    if (output.has_donated_parameter() &&
        output.donated_parameter() == buffer.parameter())
      return true;
  return false;
}

llvm::Error CommandVerifier::use(const char *name, bool present,
                                 const BufferRef &ref, uint64_t bytes,
                                 uint64_t element, Access access) {
  if (!present)
    return failure("operand {0} is missing", name);
  if (ref.buffer() >= uint32_t(executable.buffers_size()))
    return failure("operand {0} refers to buffer {1}, but the program has {2}",
                   name, ref.buffer(), executable.buffers_size());
  const Buffer &buffer = executable.buffers(ref.buffer());
  if (ref.offset() > buffer.bytes() || bytes > buffer.bytes() - ref.offset())
    return failure("operand {0} covers {1} bytes at offset {2} of buffer {3}, "
                   "which has {4}",
                   name, bytes, ref.offset(), ref.buffer(), buffer.bytes());
  if (ref.offset() % element)
    return failure("operand {0} starts inside an element, at offset {1}", name,
                   ref.offset());
  if (access == Access::Write && bytes && !isWritable(buffer))
    return failure("operand {0} writes buffer {1}, which is read-only", name,
                   ref.buffer());
  extents.push_back(
      {name, ref.buffer(), ref.offset(), ref.offset() + bytes, access});
  return llvm::Error::success();
}

CommandVerifier::Memory CommandVerifier::memoryOf(uint32_t index) const {
  const Buffer &buffer = executable.buffers(index);
  switch (buffer.place_case()) {
  case Buffer::kArenaOffset:
    return {Buffer::kArenaOffset, 0, buffer.arena_offset()};
  case Buffer::kOutput: {
    const Output &output = executable.outputs(buffer.output());
    if (output.has_donated_parameter())
      return {Buffer::kParameter, output.donated_parameter(), 0};
    if (output.has_forwarded_parameter())
      return {Buffer::kParameter, output.forwarded_parameter(), 0};
    return {Buffer::kOutput, buffer.output(), 0};
  }
  case Buffer::kParameter:
    return {Buffer::kParameter, buffer.parameter(), 0};
  case Buffer::kScalar:
    return {Buffer::kScalar, buffer.scalar(), 0};
  case Buffer::kConstant:
    return {Buffer::kConstant, buffer.constant(), 0};
  case Buffer::PLACE_NOT_SET:
    break;
  }
  return {Buffer::PLACE_NOT_SET, index, 0};
}

llvm::Error CommandVerifier::checkNoOverlap() const {
  auto overlap = [&](const Extent &a, const Extent &b) {
    Memory first = memoryOf(a.buffer), second = memoryOf(b.buffer);
    return first.place == second.place && first.index == second.index &&
           first.base + a.begin < second.base + b.end &&
           second.base + b.begin < first.base + a.end;
  };
  for (const Extent &written : extents)
    for (const Extent &other : extents)
      if (written.access == Access::Write && &written != &other &&
          overlap(written, other))
        return failure("operand {0} overwrites operand {1}", written.name,
                       other.name);
  return llvm::Error::success();
}

llvm::Error CommandVerifier::verifyCall(const KernelCall &call) {
  if (call.kernel() >= uint32_t(executable.kernels_size()))
    return failure("it calls kernel {0}, but the program has {1}",
                   call.kernel(), executable.kernels_size());
  if (call.trip_count() < 0 || call.grain() < 0)
    return failure("trip count {0} or grain {1} is negative", call.trip_count(),
                   call.grain());
  const Kernel &kernel = executable.kernels(call.kernel());
  if (call.trip_count() > kernel.trip_count())
    return failure("trip count {0} exceeds the kernel's {1}", call.trip_count(),
                   kernel.trip_count());
  if (call.arguments_size() != kernel.operands_size())
    return failure("it has {0} arguments, but its kernel takes {1}",
                   call.arguments_size(), kernel.operands_size());
  for (int i = 0; i < call.arguments_size(); ++i) {
    const KernelOperand &operand = kernel.operands(i);
    if (llvm::Error error =
            use("argument", true, call.arguments(i), operand.bytes(), 1,
                operand.written() ? Access::Write : Access::Read))
      return error;
  }
  return llvm::Error::success();
}

/// Bytes of `batch` matrices of `matrix` elements each, `stride` elements
/// apart; nullopt if the number of bytes doesn't fit in 63 bits.
std::optional<uint64_t> stridedBytes(int64_t batch, int64_t stride,
                                     uint64_t matrix, uint64_t element) {
  if (batch == 0 || matrix == 0)
    return 0;
  std::optional<uint64_t> last =
      checkedProduct(std::initializer_list<int64_t>{batch - 1, stride});
  if (!last || *last + matrix > uint64_t(INT64_MAX))
    return std::nullopt;
  return checkedProduct(std::initializer_list<int64_t>{int64_t(*last + matrix)},
                        element);
}

llvm::Error CommandVerifier::verifyCall(const MatmulCall &call) {
  uint64_t element = elementBytes(call.dtype());
  if (!element || call.dtype() == BOOL)
    return failure("a matrix product doesn't support dtype {0} ({1})",
                   int(call.dtype()), dtypeName(call.dtype()));
  using List = std::initializer_list<int64_t>;
  // Keeps the sum and the product of two sizes within 63 bits, even if another
  // size is 0.
  constexpr int64_t kLargestSize = int64_t(1) << 31;
  for (int64_t size : {call.batch(), call.m(), call.n(), call.k()})
    if (size < 0 || size >= kLargestSize)
      return failure("size {0} of a matrix product is out of range", size);
  auto mk = checkedProduct(List{call.m(), call.k()});
  auto kn = checkedProduct(List{call.k(), call.n()});
  auto c = checkedProduct(List{call.batch(), call.m(), call.n()}, element);
  if (!mk || !kn || !c)
    return failure("a matrix product's result has more than 2^63 bytes");
  // oneDNN rejects matrices that overlap.
  if ((call.batch_stride_a() && call.batch_stride_a() < int64_t(*mk)) ||
      (call.batch_stride_b() && call.batch_stride_b() < int64_t(*kn)))
    return failure("batch stride {0} or {1} is smaller than a matrix",
                   call.batch_stride_a(), call.batch_stride_b());
  auto a = stridedBytes(call.batch(), call.batch_stride_a(), *mk, element);
  auto b = stridedBytes(call.batch(), call.batch_stride_b(), *kn, element);
  if (!a || !b)
    return failure("a matrix product's operand has more than 2^63 bytes");
  if (llvm::Error error =
          use("a", call.has_a(), call.a(), *a, element, Access::Read))
    return error;
  if (llvm::Error error =
          use("b", call.has_b(), call.b(), *b, element, Access::Read))
    return error;
  if (llvm::Error error =
          use("c", call.has_c(), call.c(), *c, element, Access::Write))
    return error;
  if (call.has_bias())
    if (llvm::Error error = use("bias", true, call.bias(), call.n() * element,
                                element, Access::Read))
      return error;
  return checkNoOverlap();
}

llvm::Error CommandVerifier::verifyCall(const ConvolutionCall &call) {
  if (!ConvolutionCall::Kind_IsValid(call.kind()))
    return failure("unknown kind of convolution {0}", int(call.kind()));
  uint64_t element = elementBytes(call.dtype());
  if (!element || call.dtype() == BOOL)
    return failure("a convolution doesn't support dtype {0} ({1})",
                   int(call.dtype()), dtypeName(call.dtype()));
  llvm::Expected<ConvolutionGeometry> geometry = convolutionGeometry(call);
  if (!geometry)
    return geometry.takeError();
  auto access = [&](ConvolutionCall::Kind writer) {
    return call.kind() == writer ? Access::Write : Access::Read;
  };
  if (llvm::Error error = use("input", call.has_input(), call.input(),
                              geometry->inputElements() * element, element,
                              access(ConvolutionCall::BACKWARD_INPUT)))
    return error;
  if (llvm::Error error = use("weight", call.has_weight(), call.weight(),
                              geometry->weightElements() * element, element,
                              access(ConvolutionCall::BACKWARD_WEIGHT)))
    return error;
  if (llvm::Error error = use("output", call.has_output(), call.output(),
                              geometry->outputElements() * element, element,
                              access(ConvolutionCall::FORWARD)))
    return error;
  if (call.has_bias()) {
    if (call.kind() == ConvolutionCall::BACKWARD_INPUT)
      return failure("a convolution's gradient of the input has no bias");
    if (llvm::Error error =
            use("bias", true, call.bias(), geometry->outputChannels * element,
                element, access(ConvolutionCall::BACKWARD_WEIGHT)))
      return error;
  }
  return checkNoOverlap();
}

/// The number of elements of an attention's mask up to the last one that is
/// read.
static llvm::Expected<uint64_t> maskElements(const AttentionCall &call) {
  uint64_t elements = call.keys();
  for (auto [count, stride] :
       {std::pair(call.batch(), call.mask_batch_stride()),
        std::pair(call.heads(), call.mask_head_stride()),
        std::pair(call.length(), call.mask_row_stride())}) {
    auto reach =
        checkedProduct(std::initializer_list<int64_t>{count - 1, stride});
    if (stride < 0 || !reach || *reach > uint64_t(INT64_MAX) / 16)
      return failure("stride {0} of an attention's mask is out of range",
                     stride);
    elements += *reach;
  }
  return elements;
}

llvm::Error CommandVerifier::verifyCall(const AttentionCall &call) {
  using List = std::initializer_list<int64_t>;
  constexpr uint64_t kElement = sizeof(float);
  int64_t length = call.length(), keys = call.keys();
  int64_t width = call.width(), valueWidth = call.value_width();
  // Prevents overflow of the size of scratch memory, which is a sum of products
  // of two sizes.
  constexpr int64_t kLargestSize = int64_t(1) << 28;
  for (int64_t size :
       {call.batch(), call.heads(), length, keys, width, valueWidth})
    if (size < 1 || size >= kLargestSize)
      return failure("size {0} of an attention is out of range", size);
  auto bytes = [&](int64_t rows, int64_t columns) {
    return checkedProduct(List{call.batch(), call.heads(), rows, columns},
                          kElement);
  };
  auto query = bytes(length, width), key = bytes(keys, width);
  auto value = bytes(keys, valueWidth), output = bytes(length, valueWidth);
  auto logSum = bytes(length, 1);
  if (!query || !key || !value || !output || !logSum)
    return failure("an attention's tensor has more than 2^63 bytes");
  Access result = call.backward() ? Access::Read : Access::Write;
  struct Operand {
    const char *name;
    bool present;
    const BufferRef &ref;
    uint64_t bytes;
    Access access;
  };
  std::vector<Operand> operands = {
      {"query", call.has_query(), call.query(), *query, Access::Read},
      {"key", call.has_key(), call.key(), *key, Access::Read},
      {"value", call.has_value(), call.value(), *value, Access::Read},
      {"output", call.has_output(), call.output(), *output, result},
      {"log_sum", call.has_log_sum(), call.log_sum(), *logSum, result}};
  if (call.has_mask()) {
    llvm::Expected<uint64_t> elements = maskElements(call);
    if (!elements)
      return elements.takeError();
    operands.push_back(
        {"mask", true, call.mask(), *elements * kElement, Access::Read});
  }
  if (call.backward()) {
    operands.push_back({"grad_output", call.has_grad_output(),
                        call.grad_output(), *output, Access::Read});
    operands.push_back({"grad_query", call.has_grad_query(), call.grad_query(),
                        *query, Access::Write});
    operands.push_back({"grad_key", call.has_grad_key(), call.grad_key(), *key,
                        Access::Write});
    operands.push_back({"grad_value", call.has_grad_value(), call.grad_value(),
                        *value, Access::Write});
  }
  for (const Operand &operand : operands)
    if (llvm::Error error = use(operand.name, operand.present, operand.ref,
                                operand.bytes, kElement, operand.access))
      return error;
  return checkNoOverlap();
}

llvm::Error CommandVerifier::verifyCall(const CopyCall &call) {
  if (llvm::Error error = use("source", call.has_source(), call.source(),
                              call.bytes(), 1, Access::Read))
    return error;
  if (llvm::Error error =
          use("destination", call.has_destination(), call.destination(),
              call.bytes(), 1, Access::Write))
    return error;
  return checkNoOverlap();
}

llvm::Error CommandVerifier::verifyCall(const FillCall &call) {
  return use("destination", call.has_destination(), call.destination(),
             call.bytes(), 1, Access::Write);
}

llvm::Error CommandVerifier::verifyCall(const BoundsCheck &call) {
  bool isFloat = call.dtype() >= FLOAT16;
  if (call.nonzero() ? isFloat : call.dtype() != INT32 && call.dtype() != INT64)
    return failure("indices can't have dtype {0} ({1})", int(call.dtype()),
                   dtypeName(call.dtype()));
  uint64_t element = elementBytes(call.dtype());
  if (call.count() < 0 || uint64_t(call.count()) > UINT64_MAX / element)
    return failure("it checks {0} indices", call.count());
  return use("indices", call.has_indices(), call.indices(),
             uint64_t(call.count()) * element, element, Access::Read);
}

llvm::Error CommandVerifier::verifyCall(const HostCall &call) {
  if (call.op().empty())
    return failure("a host call names no op");
  if (call.inputs_size() != call.input_types_size() ||
      call.outputs_size() != call.output_types_size())
    return failure("a host call has {0} inputs of {1} types and {2} outputs of "
                   "{3} types",
                   call.inputs_size(), call.input_types_size(),
                   call.outputs_size(), call.output_types_size());
  auto useAll = [&](const auto &refs, const auto &types, const char *name,
                    Access access) -> llvm::Error {
    for (int i = 0; i < refs.size(); ++i) {
      uint64_t element = elementBytes(types[i].dtype());
      auto bytes = checkedProduct(types[i].sizes(), element);
      if (!element || !bytes)
        return failure("a host call's {0} {1} isn't a tensor", name, i);
      if (llvm::Error error = use(name, true, refs[i], *bytes,
                                  elementAlignment(types[i].dtype()), access))
        return error;
    }
    return llvm::Error::success();
  };
  if (llvm::Error error =
          useAll(call.inputs(), call.input_types(), "input", Access::Read))
    return error;
  if (call.updates_input()) {
    if (!call.inputs_size() || !call.outputs_size())
      return failure("a host call updates an input that it doesn't have");
    const BufferRef &input = call.inputs(call.inputs_size() - 1);
    const BufferRef &output = call.outputs(call.outputs_size() - 1);
    const Extent &read = extents.back();
    if (input.buffer() != output.buffer() ||
        input.offset() != output.offset() ||
        read.end - read.begin != tensorBytes(*call.output_types().rbegin()))
      return failure("a host call's last output isn't its last input");
    extents.pop_back(); // the output's extent is added below
  }
  if (llvm::Error error =
          useAll(call.outputs(), call.output_types(), "output", Access::Write))
    return error;
  return checkNoOverlap();
}

llvm::Error CommandVerifier::verify() {
  switch (command.call_case()) {
#define RUNTIME_CALL(Name, field)                                              \
  case Command::k##Name:                                                       \
    return verifyCall(command.field());
#include "Calls.def"
  case Command::CALL_NOT_SET:
    return failure("it has no call");
  }
  return failure("it has an unknown kind");
}

} // namespace

llvm::Error torch_ltc::runtime::verifyCommands(const Executable &executable) {
  for (int i = 0; i < executable.commands_size(); ++i) {
    const Command &command = executable.commands(i);
    if (llvm::Error error = CommandVerifier(executable, command).verify())
      return failure("command {0} ('{1}'): {2}", i, command.name(),
                     llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}
