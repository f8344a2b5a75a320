//===- ExecutableBuilder.cpp - Conversion of the kernels stage to protobuf ===//

#include "ExecutableBuilder.h"
#include "SourceNames.h"

#include "torch_ltc/Kernels/Program.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::torch_ltc;
namespace runtime = ::torch_ltc::runtime;

FailureOr<runtime::DType> ExecutableBuilder::getDType(Type type, Location loc,
                                                      bool isUnsigned) {
  if (type.isF32())
    return runtime::FLOAT32;
  if (type.isF64())
    return runtime::FLOAT64;
  if (type.isBF16())
    return runtime::BFLOAT16;
  if (type.isF16())
    return runtime::FLOAT16;
  if (auto integer = dyn_cast<IntegerType>(type)) {
    switch (integer.getWidth()) {
    case 1:
      return runtime::BOOL;
    case 8:
      return isUnsigned ? runtime::UINT8 : runtime::INT8;
    case 16:
      return runtime::INT16;
    case 32:
      return runtime::INT32;
    case 64:
      return runtime::INT64;
    default:
      break;
    }
  }
  return emitError(loc) << "element type " << type
                        << " has no place in an executable";
}

LogicalResult ExecutableBuilder::build() {
  addBuffers();
  return success(succeeded(addParameters()) && succeeded(addConstants()) &&
                 succeeded(addCommands()) && succeeded(addOutputs()));
}

LogicalResult ExecutableBuilder::setType(runtime::TensorType *message,
                                         Type type, bool isUnsigned,
                                         bool isComplex, Location loc) {
  auto tensor = cast<RankedTensorType>(type);
  FailureOr<runtime::DType> dtype =
      getDType(tensor.getElementType(), loc, isUnsigned);
  if (failed(dtype))
    return failure();
  message->set_dtype(*dtype);
  for (int64_t size : tensor.getShape())
    message->add_sizes(size);
  if (isComplex) {
    message->set_dtype(*dtype == runtime::FLOAT64 ? runtime::COMPLEX128
                                                  : runtime::COMPLEX64);
    message->mutable_sizes()->RemoveLast();
  }
  return success();
}

LogicalResult ExecutableBuilder::addParameters() {
  for (BlockArgument argument : program.getArguments()) {
    Type type = argument.getType();
    if (!isa<RankedTensorType>(type)) {
      executable.add_scalars(isa<FloatType>(type) ? runtime::FLOAT
                                                  : runtime::INT);
      continue;
    }
    runtime::Parameter *parameter = executable.add_parameters();
    auto has = [&](StringRef name) {
      return program.getArgAttr(argument.getArgNumber(), name) != nullptr;
    };
    if (failed(setType(parameter->mutable_type(), type, has(kUnsignedAttr),
                       has(kComplexAttr), argument.getLoc())))
      return failure();
    if (auto name = program.getArgAttrOfType<StringAttr>(
            argument.getArgNumber(), kNameAttr))
      parameter->set_name(name.str());
  }
  return success();
}

void ExecutableBuilder::addBuffers() {
  for (const PlannedBuffer &planned : plan.buffers) {
    runtime::Buffer *buffer = executable.add_buffers();
    buffer->set_bytes(planned.bytes);
    switch (planned.place) {
    case PlannedBuffer::Place::Parameter:
      buffer->set_parameter(planned.index);
      break;
    case PlannedBuffer::Place::Scalar:
      buffer->set_scalar(planned.index);
      break;
    case PlannedBuffer::Place::Output:
      buffer->set_output(planned.index);
      break;
    case PlannedBuffer::Place::Arena:
      buffer->set_arena_offset(planned.arenaOffset);
      break;
    case PlannedBuffer::Place::Constant:
      buffer->set_constant(planned.index);
      break;
    }
  }
  executable.set_arena_bytes(plan.arenaBytes);
}

LogicalResult ExecutableBuilder::addConstants() {
  for (DenseElementsAttr elements : plan.constants) {
    std::string *bytes = executable.add_constants();
    if (elements.getElementType().isInteger(1)) {
      // DenseElementsAttr packs bits; in memory each bool is one byte.
      for (bool value : elements.getValues<bool>())
        bytes->push_back(value);
      continue;
    }
    ArrayRef<char> raw = elements.getRawData();
    int64_t copies = elements.isSplat() ? elements.getNumElements() : 1;
    for (int64_t i = 0; i < copies; ++i)
      bytes->append(raw.data(), raw.size());
  }
  return success();
}

void ExecutableBuilder::setPart(runtime::BufferRef *reference, Value value) {
  BufferPart part = plan.parts.at(value);
  reference->set_buffer(part.buffer);
  reference->set_offset(part.offset);
}

/// The types of the results, or of the operands of a command without results:
/// "f32[4,5], i64[]".
static std::string typesOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto types = op->getNumResults() ? TypeRange(op->getResultTypes())
                                   : TypeRange(op->getOperandTypes());
  llvm::interleaveComma(types, stream, [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    stream << tensor.getElementType() << "[";
    llvm::interleave(tensor.getShape(), stream, ",");
    stream << "]";
  });
  return text;
}

/// Joins at most `limit` names: "aten.add+aten.relu".
static std::string joined(ArrayRef<StringRef> names, size_t limit) {
  std::string text = llvm::join(names.take_front(limit), "+");
  return names.size() > limit ? text + "+..." : text;
}

/// Name of a command whose ATen ops aren't known.
static StringRef nameOf(Operation *op) {
  if (auto call = dyn_cast<ltc::KernelCallOp>(op))
    return call.getCallee();
  if (auto call = dyn_cast<ltc::HostCallOp>(op))
    return call.getCallee();
  return op->getName().stripDialect();
}

runtime::Command *ExecutableBuilder::addCommand(Operation *op,
                                                StringRef details) {
  runtime::Command *command = executable.add_commands();
  SourceNames names = getSourceNames(op->getLoc());
  std::string name = joined(names.ops, 8);
  if (name.empty())
    name = nameOf(op).str();
  command->set_name(details.empty() ? name : name + " " + details.str());
  if (!names.lines.empty())
    command->set_location(names.lines.front());
  command->set_module_path(joined(names.modules, 3));
  command->set_result_types(typesOf(op));
  command->mutable_nodes()->Add(names.nodes.begin(), names.nodes.end());
  return command;
}

LogicalResult ExecutableBuilder::addOutputs() {
  Operation *terminator = program.getBody().front().getTerminator();
  for (auto [index, planned] : llvm::enumerate(plan.outputs)) {
    runtime::Output *output = executable.add_outputs();
    auto has = [&](StringRef name) {
      return program.getResultAttr(index, name) != nullptr;
    };
    if (failed(setType(
            output->mutable_type(), terminator->getOperand(index).getType(),
            has(kUnsignedAttr), has(kComplexAttr), terminator->getLoc())))
      return failure();
    if (planned.forwardedParameter)
      output->set_forwarded_parameter(*planned.forwardedParameter);
    if (planned.updatedParameter)
      output->set_updated_parameter(*planned.updatedParameter);
    if (planned.donatedParameter)
      output->set_donated_parameter(*planned.donatedParameter);
    if (!planned.copyFrom)
      continue;
    runtime::Command *command = executable.add_commands();
    command->set_name("copy to output");
    runtime::CopyCall *copy = command->mutable_copy();
    copy->mutable_source()->set_buffer(planned.copyFrom->buffer);
    copy->mutable_source()->set_offset(planned.copyFrom->offset);
    copy->mutable_destination()->set_buffer(planned.part.buffer);
    copy->mutable_destination()->set_offset(planned.part.offset);
    copy->set_bytes(planned.bytes);
  }
  return success();
}
