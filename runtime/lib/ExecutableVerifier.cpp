//===- ExecutableVerifier.cpp - Checks before an executable runs ----------===//

#include "ExecutableVerifier.h"

#include "Arena.h"
#include "DataType.h"
#include "Diagnostics.h"
#include "SizeBinding.h"

#include <set>
#include <string>

using namespace torch_ltc::runtime;

namespace {

/// The size of a process's address space.
constexpr uint64_t kMaxArenaBytes = uint64_t(1) << 47;

llvm::Error verifyType(const TensorType &type, const char *what, int index) {
  uint64_t bytes = elementBytes(type.dtype());
  if (!bytes)
    return failure("{0} {1} has the unknown dtype {2}", what, index,
                   int(type.dtype()));
  if (!checkedProduct(type.sizes(), bytes))
    return failure("{0} {1} has a negative size or more than 2^63 bytes", what,
                   index);
  return llvm::Error::success();
}

llvm::Error verifySignature(const Executable &executable) {
  for (int i = 0; i < executable.parameters_size(); ++i)
    if (llvm::Error error =
            verifyType(executable.parameters(i).type(), "parameter", i))
      return error;
  for (int i = 0; i < executable.scalars_size(); ++i)
    if (!ScalarKind_IsValid(executable.scalars(i)))
      return failure("scalar {0} has the unknown kind {1}", i,
                     executable.scalars(i));
  return llvm::Error::success();
}

llvm::Error verifyOutputs(const Executable &executable) {
  std::set<uint32_t> donated, forwarded;
  for (int i = 0; i < executable.outputs_size(); ++i) {
    const Output &output = executable.outputs(i);
    if (llvm::Error error = verifyType(output.type(), "output", i))
      return error;
    if (output.has_updated_parameter()) {
      uint32_t updated = output.updated_parameter();
      if (updated >= uint32_t(executable.parameters_size()))
        return failure(
            "output {0} updates parameter {1}, but the program has {2}", i,
            updated, executable.parameters_size());
      if (tensorBytes(executable.parameters(updated).type()) !=
          tensorBytes(output.type()))
        return failure("output {0} can't update parameter {1}: their "
                       "sizes differ",
                       i, updated);
    }
    bool isDonated = output.has_donated_parameter();
    bool isForwarded = output.has_forwarded_parameter();
    if (!isDonated && !isForwarded)
      continue;
    if (isDonated && isForwarded)
      return failure("output {0} is both donated and forwarded", i);
    uint32_t parameter =
        isDonated ? output.donated_parameter() : output.forwarded_parameter();
    if (parameter >= uint32_t(executable.parameters_size()))
      return failure(
          "output {0} refers to parameter {1}, but the program has {2}", i,
          parameter, executable.parameters_size());
    const TensorType &type = executable.parameters(parameter).type();
    if (tensorBytes(type) != tensorBytes(output.type()))
      return failure("output {0} has {1} bytes, but its parameter {2} has {3}",
                     i, tensorBytes(output.type()), parameter,
                     tensorBytes(type));
    if (isForwarded && type.dtype() != output.type().dtype())
      return failure("output {0} is {1}, but its forwarded parameter {2} is "
                     "{3}",
                     i, dtypeName(output.type().dtype()), parameter,
                     dtypeName(type.dtype()));
    if (isDonated && !donated.insert(parameter).second)
      return failure("parameter {0} is donated to two outputs", parameter);
    if (isForwarded)
      forwarded.insert(parameter);
  }
  for (uint32_t parameter : donated)
    if (forwarded.count(parameter))
      return failure("parameter {0} is donated and forwarded", parameter);
  return llvm::Error::success();
}

llvm::Error verifyKernels(const Executable &executable) {
  std::set<std::string> symbols;
  for (int i = 0; i < executable.kernels_size(); ++i) {
    const Kernel &kernel = executable.kernels(i);
    if (kernel.symbol().empty())
      return failure("kernel {0} has no symbol", i);
    if (kernel.object().empty())
      return failure("kernel {0} ('{1}') has no object code", i,
                     kernel.symbol());
    if (!symbols.insert(kernel.symbol()).second)
      return failure("two kernels have the symbol '{0}'", kernel.symbol());
  }
  return llvm::Error::success();
}

llvm::Error verifyIndex(int buffer, const char *table, uint32_t index,
                        int count) {
  if (index < uint32_t(count))
    return llvm::Error::success();
  return failure("buffer {0} refers to {1} {2}, but the program has {3}",
                 buffer, table, index, count);
}

llvm::Error verifyArenaBuffer(int index, uint64_t offset, uint64_t bytes,
                              uint64_t arenaBytes) {
  if (offset % kAlignment)
    return failure("buffer {0} is at the unaligned arena offset {1}", index,
                   offset);
  if (offset > arenaBytes || bytes > arenaBytes - offset)
    return failure(
        "buffer {0} ({1} bytes at {2}) exceeds the arena of {3} bytes", index,
        bytes, offset, arenaBytes);
  return llvm::Error::success();
}

llvm::Error verifyBuffer(const Executable &executable, int index) {
  const Buffer &buffer = executable.buffers(index);
  uint64_t expected = 0;
  uint32_t entry = 0;
  int count = 0;
  const char *table = nullptr;
  switch (buffer.place_case()) {
  case Buffer::kArenaOffset:
    return verifyArenaBuffer(index, buffer.arena_offset(), buffer.bytes(),
                             executable.arena_bytes());
  case Buffer::kParameter:
    table = "parameter", entry = buffer.parameter();
    count = executable.parameters_size();
    break;
  case Buffer::kScalar:
    table = "scalar", entry = buffer.scalar();
    count = executable.scalars_size();
    break;
  case Buffer::kOutput:
    table = "output", entry = buffer.output();
    count = executable.outputs_size();
    break;
  case Buffer::kConstant:
    table = "constant", entry = buffer.constant();
    count = executable.constants_size();
    break;
  case Buffer::PLACE_NOT_SET:
    return failure("buffer {0} has no place", index);
  }
  if (llvm::Error error = verifyIndex(index, table, entry, count))
    return error;
  if (buffer.has_parameter())
    expected = tensorBytes(executable.parameters(entry).type());
  else if (buffer.has_scalar())
    expected = 8;
  else if (buffer.has_output())
    expected = tensorBytes(executable.outputs(entry).type());
  else
    expected = executable.constants(entry).size();
  if (buffer.bytes() == expected)
    return llvm::Error::success();
  return failure("buffer {0} has {1} bytes, but its {2} {3} has {4}", index,
                 buffer.bytes(), table, entry, expected);
}

/// Checks the signature, the buffers and the commands. If `hasConstants` is
/// false, the constants' buffers have been checked before and the constants
/// moved elsewhere.
llvm::Error verifySizes(const Executable &executable, bool hasConstants) {
  if (llvm::Error error = verifySignature(executable))
    return error;
  if (llvm::Error error = verifyOutputs(executable))
    return error;
  if (executable.arena_bytes() > kMaxArenaBytes)
    return failure("its temporaries need {0} bytes", executable.arena_bytes());
  for (int i = 0; i < executable.buffers_size(); ++i)
    if (hasConstants || !executable.buffers(i).has_constant())
      if (llvm::Error error = verifyBuffer(executable, i))
        return error;
  return verifyCommands(executable);
}

/// Checks a general executable, but not its sizes: they are stand-ins, for
/// which the program may be too large to run. The sizes of each bound
/// executable are checked instead.
llvm::Error verifyGeneral(Executable &executable) {
  if (llvm::Error error = verifySignature(executable))
    return error;
  if (llvm::Error error = verifyOutputs(executable))
    return error;
  for (int i = 0; i < executable.buffers_size(); ++i)
    if (executable.buffers(i).has_constant())
      if (llvm::Error error = verifyBuffer(executable, i))
        return error;
  return verifyGeneralForm(executable);
}

llvm::Error verifyTables(Executable &executable) {
  if (llvm::Error error = verifyKernels(executable))
    return error;
  if (executable.has_general())
    return verifyGeneral(executable);
  for (const Kernel &kernel : executable.kernels())
    if (kernel.numbers_size())
      return failure(
          "kernel '{0}' has a table, but the program has no general form",
          kernel.symbol());
  return verifySizes(executable, /*hasConstants=*/true);
}

} // namespace

uint64_t torch_ltc::runtime::tensorBytes(const TensorType &type) {
  return *checkedProduct(type.sizes(), elementBytes(type.dtype()));
}

llvm::Error torch_ltc::runtime::verifyExecutable(Executable &executable) {
  if (executable.format_version() != FORMAT_VERSION)
    return failure("The compiled program '{0}' has format version {1}, but "
                   "this runtime reads version {2}: delete the program cache "
                   "and compile it again.",
                   executable.name(), executable.format_version(),
                   int(FORMAT_VERSION));
  if (llvm::Error error = verifyTables(executable))
    return failure("The compiled program '{0}' is damaged: {1}. Delete the "
                   "program cache and compile it again.",
                   executable.name(), llvm::toString(std::move(error)));
  return llvm::Error::success();
}

llvm::Error torch_ltc::runtime::verifyBinding(const Executable &executable) {
  if (llvm::Error error = verifySizes(executable, /*hasConstants=*/false))
    return failure("Program '{0}' can't be bound to these sizes: {1}.",
                   executable.name(), llvm::toString(std::move(error)));
  return llvm::Error::success();
}
