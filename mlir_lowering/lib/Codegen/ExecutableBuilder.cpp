//===- ExecutableBuilder.cpp - Kernels stage to protobuf ------------------===//

#include "ExecutableBuilder.h"
#include "SourceNames.h"

#include "torch_ltc/Dialect/Ltc/CheckedDivisors.h"
#include "torch_ltc/Kernels/KernelSchedule.h"
#include "torch_ltc/Kernels/Program.h"

using namespace mlir;
using namespace mlir::torch_ltc;
namespace runtime = ::torch_ltc::runtime;

static FailureOr<runtime::DType> getDType(Type type, Location loc,
                                          bool isUnsigned = false) {
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
                                         Type type, Attribute isUnsigned,
                                         Location loc) {
  auto tensor = cast<RankedTensorType>(type);
  FailureOr<runtime::DType> dtype =
      getDType(tensor.getElementType(), loc, bool(isUnsigned));
  if (failed(dtype))
    return failure();
  message->set_dtype(*dtype);
  for (int64_t size : tensor.getShape())
    message->add_sizes(size);
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
    Attribute isUnsigned =
        program.getArgAttr(argument.getArgNumber(), ltc::kUnsignedAttr);
    if (failed(setType(parameter->mutable_type(), type, isUnsigned,
                       argument.getLoc())))
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
      // DenseElementsAttr packs bits; memory has a byte for each.
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

/// "f32[4,5], i64[]": results, or operands of a command that only looks.
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

runtime::Command *ExecutableBuilder::addCommand(Operation *op,
                                                StringRef fallbackName,
                                                StringRef sizes) {
  runtime::Command *command = executable.add_commands();
  SourceNames names = getSourceNames(op->getLoc());
  std::string name = names.ops.empty() ? fallbackName.str() : names.ops;
  command->set_name(sizes.empty() ? name : name + " " + sizes.str());
  command->set_location(names.line);
  command->set_module_path(names.modules);
  command->set_result_types(typesOf(op));
  command->mutable_nodes()->Add(names.nodes.begin(), names.nodes.end());
  return command;
}

LogicalResult ExecutableBuilder::addCommands() {
  for (Operation &op : program.getBody().front()) {
    if (auto call = dyn_cast<ltc::KernelCallOp>(op)) {
      addKernelCall(call);
    } else if (auto join = dyn_cast<ltc::JoinOp>(op)) {
      addJoin(join);
    } else if (auto call = dyn_cast<ltc::LibraryCallOp>(op)) {
      if (failed(call.isMatmul()      ? addMatmul(call)
                 : call.isAttention() ? addAttention(call)
                 : call.isHost()      ? addHostCall(call)
                                      : addConvolution(call)))
        return failure();
    } else if (auto check = dyn_cast<ltc::CheckBoundsOp>(op)) {
      if (failed(addCheck(check)))
        return failure();
    }
  }
  return success();
}

LogicalResult ExecutableBuilder::addCheck(ltc::CheckBoundsOp op) {
  auto type = cast<RankedTensorType>(op.getIndices().getType());
  FailureOr<runtime::DType> dtype =
      getDType(type.getElementType(), op.getLoc());
  if (failed(dtype))
    return failure();
  runtime::BoundsCheck *check =
      addCommand(op, "bounds check")->mutable_bounds_check();
  check->set_dtype(*dtype);
  check->set_count(type.getNumElements());
  check->set_lower(op.getLower());
  check->set_upper(op.getUpper());
  check->set_nonzero(op->hasAttr(ltc::kNonzeroAttr));
  setPart(check->mutable_indices(), op.getIndices());
  return success();
}

/// Scalars have 8 bytes.
static int64_t getOperandBytes(Type type) {
  return isa<RankedTensorType>(type) ? getTensorBytes(type) : 8;
}

void ExecutableBuilder::addKernelCall(ltc::KernelCallOp op) {
  runtime::KernelCall *call = addCommand(op, op.getCallee())->mutable_kernel();
  call->set_kernel(kernelOfCall.at(op));
  TripCount trips = getTripCount(symbols.lookup<func::FuncOp>(op.getCallee()));
  call->set_trip_count(trips.count);
  call->set_grain(trips.grain);
  for (Value operand : op.getArguments())
    setPart(call->add_arguments(), operand);
  for (Value result : op.getOutputs())
    setPart(call->add_arguments(), result);
  runtime::Kernel *kernel = executable.mutable_kernels(call->kernel());
  kernel->set_trip_count(trips.count);
  if (kernel->operands_size()) // of an earlier call
    return;
  for (Value operand : op.getArguments())
    kernel->add_operands()->set_bytes(getOperandBytes(operand.getType()));
  for (Value result : op.getOutputs()) {
    runtime::KernelOperand *operand = kernel->add_operands();
    operand->set_bytes(getTensorBytes(result.getType()));
    operand->set_written(true);
  }
}

/// Copies the parts that weren't written in place.
void ExecutableBuilder::addJoin(ltc::JoinOp join) {
  BufferPart whole = plan.parts.at(join.getWhole());
  for (Value value : join.getParts()) {
    BufferPart part = plan.parts.at(value);
    int64_t bytes = getTensorBytes(value.getType());
    if (part.buffer != whole.buffer || part.offset != whole.offset) {
      runtime::CopyCall *copy = addCommand(join, "join")->mutable_copy();
      setPart(copy->mutable_source(), value);
      copy->mutable_destination()->set_buffer(whole.buffer);
      copy->mutable_destination()->set_offset(whole.offset);
      copy->set_bytes(bytes);
    }
    whole.offset += bytes;
  }
}

LogicalResult ExecutableBuilder::addMatmul(ltc::LibraryCallOp op) {
  auto a = cast<RankedTensorType>(op.getArguments()[0].getType());
  auto b = cast<RankedTensorType>(op.getArguments()[1].getType());
  auto c = cast<RankedTensorType>(op.getOutputs()[0].getType());
  FailureOr<runtime::DType> dtype = getDType(c.getElementType(), op.getLoc());
  if (failed(dtype))
    return failure();
  int64_t m = c.getDimSize(c.getRank() - 2), n = c.getDimSize(c.getRank() - 1);
  int64_t k = op.isTransposeA() ? a.getDimSize(a.getRank() - 2)
                                : a.getDimSize(a.getRank() - 1);
  int64_t batch = c.getRank() == 3 ? c.getDimSize(0) : 1;
  // One weight for the whole batch: the batch's rows are one tall matrix.
  if (a.getRank() == 3 && b.getRank() == 2 && !op.isTransposeA()) {
    m *= batch;
    batch = 1;
  }
  std::string sizes =
      std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  runtime::MatmulCall *call = addCommand(op, "matmul", sizes)->mutable_matmul();
  call->set_dtype(*dtype);
  call->set_batch(batch);
  call->set_m(m);
  call->set_n(n);
  call->set_k(k);
  call->set_transpose_a(op.isTransposeA());
  call->set_transpose_b(op.isTransposeB());
  call->set_batch_stride_a(a.getRank() == 3 && batch > 1 ? m * k : 0);
  call->set_batch_stride_b(b.getRank() == 3 && batch > 1 ? k * n : 0);
  setPart(call->mutable_a(), op.getArguments()[0]);
  setPart(call->mutable_b(), op.getArguments()[1]);
  setPart(call->mutable_c(), op.getOutputs()[0]);
  if (op.getArguments().size() == 3)
    setPart(call->mutable_bias(), op.getArguments()[2]);
  return success();
}

LogicalResult ExecutableBuilder::addConvolution(ltc::LibraryCallOp op) {
  Value input, weight, output, bias;
  runtime::ConvolutionCall::Kind kind;
  if (op.getName() == ltc::kConvolutionForwardName) {
    kind = runtime::ConvolutionCall::FORWARD;
    input = op.getArguments()[0];
    weight = op.getArguments()[1];
    output = op.getOutputs()[0];
    bias = op.getArguments().size() == 3 ? op.getArguments()[2] : Value();
  } else if (op.getName() == ltc::kConvolutionBackwardInputName) {
    kind = runtime::ConvolutionCall::BACKWARD_INPUT;
    output = op.getArguments()[0];
    weight = op.getArguments()[1];
    input = op.getOutputs()[0];
  } else {
    kind = runtime::ConvolutionCall::BACKWARD_WEIGHT;
    output = op.getArguments()[0];
    input = op.getArguments()[1];
    weight = op.getOutputs()[0];
    bias = op.getOutputs().size() == 2 ? op.getOutputs()[1] : Value();
  }
  auto sizesOf = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  };
  FailureOr<runtime::DType> dtype =
      getDType(getElementTypeOrSelf(input), op.getLoc());
  if (failed(dtype))
    return failure();
  runtime::ConvolutionCall *call =
      addCommand(op, op.getName())->mutable_convolution();
  call->set_kind(kind);
  call->set_dtype(*dtype);
  for (int64_t size : sizesOf(input))
    call->add_input_sizes(size);
  for (int64_t size : sizesOf(weight))
    call->add_weight_sizes(size);
  for (int64_t size : sizesOf(output))
    call->add_output_sizes(size);
  for (int64_t value : op.getList("stride"))
    call->add_stride(value);
  for (int64_t value : op.getList("padding"))
    call->add_padding(value);
  for (int64_t value : op.getList("dilation"))
    call->add_dilation(value);
  call->set_groups(op.getGroups());
  setPart(call->mutable_input(), input);
  setPart(call->mutable_weight(), weight);
  setPart(call->mutable_output(), output);
  if (bias)
    setPart(call->mutable_bias(), bias);
  return success();
}

LogicalResult ExecutableBuilder::addAttention(ltc::LibraryCallOp op) {
  bool isBackward = op.getName() == ltc::kAttentionBackwardName;
  ValueRange in = op.getArguments(), out = op.getOutputs();
  Value query = in[isBackward], key = in[isBackward + 1],
        value = in[isBackward + 2];
  auto sizesOf = [](Value tensor) {
    return cast<RankedTensorType>(tensor.getType()).getShape();
  };
  ArrayRef<int64_t> sizes = sizesOf(query);
  int64_t keys = sizesOf(key)[2], outputs = sizesOf(value)[3];
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << sizes[0] * sizes[1] << "x" << sizes[2] << "x" << keys << "x"
         << sizes[3];
  runtime::AttentionCall *call =
      addCommand(op, op.getName(), text)->mutable_attention();
  call->set_backward(isBackward);
  call->set_causal(op->hasAttr("causal"));
  call->set_batch(sizes[0]);
  call->set_heads(sizes[1]);
  call->set_length(sizes[2]);
  call->set_keys(keys);
  call->set_width(sizes[3]);
  call->set_value_width(outputs);
  setPart(call->mutable_query(), query);
  setPart(call->mutable_key(), key);
  setPart(call->mutable_value(), value);
  if (in.size() == (isBackward ? 7 : 4)) {
    ArrayRef<int64_t> mask = sizesOf(in.back());
    setPart(call->mutable_mask(), in.back());
    int64_t matrix = mask[2] * keys;
    call->set_mask_batch_stride(mask[0] == 1 ? 0 : mask[1] * matrix);
    call->set_mask_head_stride(mask[1] == 1 ? 0 : matrix);
    call->set_mask_row_stride(mask[2] == 1 ? 0 : keys);
  }
  setPart(call->mutable_output(), isBackward ? in[4] : out[0]);
  setPart(call->mutable_log_sum(), isBackward ? in[5] : out[1]);
  if (!isBackward)
    return success();
  setPart(call->mutable_grad_output(), in[0]);
  setPart(call->mutable_grad_query(), out[0]);
  setPart(call->mutable_grad_key(), out[1]);
  setPart(call->mutable_grad_value(), out[2]);
  return success();
}

static void appendNumber(llvm::raw_ostream &text, double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%a", value);
  text << digits;
}

/// One item of `LtcHostCall::arguments`.
static void appendArgument(llvm::raw_ostream &text, Attribute argument) {
  if (isa<UnitAttr>(argument)) {
    text << 'n';
  } else if (isa<TypeAttr>(argument)) {
    text << 't';
  } else if (auto list = dyn_cast<ArrayAttr>(argument)) {
    text << 'l' << list.size();
  } else if (auto boolean = dyn_cast<BoolAttr>(argument)) {
    text << 'b' << int(boolean.getValue());
  } else if (auto integer = dyn_cast<IntegerAttr>(argument)) {
    text << 'i' << integer.getInt();
  } else if (auto number = dyn_cast<FloatAttr>(argument)) {
    text << 'd';
    appendNumber(text, number.getValueAsDouble());
  } else if (auto string = dyn_cast<StringAttr>(argument)) {
    text << 's' << string.getValue();
  } else if (auto list = dyn_cast<DenseI64ArrayAttr>(argument)) {
    text << 'I';
    llvm::interleave(list.asArrayRef(), text, ",");
  } else if (auto list = dyn_cast<DenseF64ArrayAttr>(argument)) {
    text << 'D';
    llvm::interleave(
        list.asArrayRef(), [&](double value) { appendNumber(text, value); },
        [&] { text << ','; });
  }
}

LogicalResult ExecutableBuilder::addHostCall(ltc::LibraryCallOp op) {
  auto name = op->getAttrOfType<StringAttr>("op");
  runtime::HostCall *call = addCommand(op, name)->mutable_host();
  call->set_op(name.str());
  SmallVector<Attribute> types;
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      op->getAttrOfType<ArrayAttr>("arguments"),
      [&](Attribute argument) {
        appendArgument(stream, argument);
        if (isa<TypeAttr>(argument))
          types.push_back(argument);
        else if (auto list = dyn_cast<ArrayAttr>(argument))
          llvm::append_range(types, list);
      },
      [&] { stream << ';'; });
  call->set_arguments(text);
  auto isUnsigned = [](Attribute type) -> Attribute {
    return cast<TypeAttr>(type).getValue().isUnsignedInteger() ? type
                                                               : Attribute();
  };
  for (auto [type, value] : llvm::zip_equal(types, op.getArguments())) {
    if (failed(setType(call->add_input_types(), value.getType(),
                       isUnsigned(type), op.getLoc())))
      return failure();
    setPart(call->add_inputs(), value);
  }
  for (auto [type, value] : llvm::zip_equal(
           op->getAttrOfType<ArrayAttr>("results"), op.getOutputs())) {
    if (failed(setType(call->add_output_types(), value.getType(),
                       isUnsigned(type), op.getLoc())))
      return failure();
    setPart(call->add_outputs(), value);
  }
  return success();
}

LogicalResult ExecutableBuilder::addOutputs() {
  Operation *terminator = program.getBody().front().getTerminator();
  for (auto [index, planned] : llvm::enumerate(plan.outputs)) {
    runtime::Output *output = executable.add_outputs();
    if (failed(setType(output->mutable_type(),
                       terminator->getOperand(index).getType(),
                       program.getResultAttr(index, ltc::kUnsignedAttr),
                       terminator->getLoc())))
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
