//===- Commands.cpp - Conversion of the program's commands to protobuf ----===//
//
// Each kind of op has an `addCommand`, which writes the sizes and attributes
// that the runtime needs, and the parts of buffers that hold the op's operands
// and results.
//
//===----------------------------------------------------------------------===//

#include "ExecutableBuilder.h"

#include "torch_ltc/Dialect/Ltc/Collectives.h"
#include "torch_ltc/Kernels/KernelSchedule.h"
#include "torch_ltc/Kernels/Program.h"

#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace mlir::torch_ltc;

static ArrayRef<int64_t> sizesOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

//===----------------------------------------------------------------------===//
// Kernels and memory
//===----------------------------------------------------------------------===//

static LogicalResult addCommand(ExecutableBuilder &builder,
                                ltc::CheckBoundsOp op) {
  auto type = cast<RankedTensorType>(op.getIndices().getType());
  FailureOr<runtime::DType> dtype =
      builder.getDType(type.getElementType(), op.getLoc());
  if (failed(dtype))
    return failure();
  runtime::BoundsCheck *check = builder.addCommand(op)->mutable_bounds_check();
  check->set_dtype(*dtype);
  check->set_count(type.getNumElements());
  check->set_lower(op.getLower());
  check->set_upper(op.getUpper());
  check->set_nonzero(op.getNonzero());
  builder.setPart(check->mutable_indices(), op.getIndices());
  return success();
}

/// The size of a kernel's operand. Scalars have 8 bytes.
static int64_t getOperandBytes(Type type) {
  return isa<RankedTensorType>(type) ? getTensorBytes(type) : 8;
}

static LogicalResult addCommand(ExecutableBuilder &builder,
                                ltc::KernelCallOp op) {
  runtime::KernelCall *call = builder.addCommand(op)->mutable_kernel();
  call->set_kernel(builder.indexOfKernel(op));
  TripCount trips = getTripCount(builder.kernelOf(op));
  call->set_trip_count(trips.count);
  call->set_grain(trips.grain);
  for (Value operand : op.getArguments())
    builder.setPart(call->add_arguments(), operand);
  for (Value result : op.getOutputs())
    builder.setPart(call->add_arguments(), result);
  runtime::Kernel *kernel =
      builder.getExecutable().mutable_kernels(call->kernel());
  kernel->set_trip_count(trips.count);
  if (kernel->operands_size()) // set by an earlier call
    return success();
  for (Value operand : op.getArguments())
    kernel->add_operands()->set_bytes(getOperandBytes(operand.getType()));
  for (Value result : op.getOutputs()) {
    runtime::KernelOperand *operand = kernel->add_operands();
    operand->set_bytes(getTensorBytes(result.getType()));
    operand->set_written(true);
  }
  return success();
}

static LogicalResult addCommand(ExecutableBuilder &builder, ltc::JoinOp join) {
  for (const CopiedPart &part : builder.copiedParts(join)) {
    runtime::CopyCall *copy = builder.addCommand(join)->mutable_copy();
    builder.setPart(copy->mutable_source(), part.source);
    copy->mutable_destination()->set_buffer(part.destination.buffer);
    copy->mutable_destination()->set_offset(part.destination.offset);
    copy->set_bytes(getTensorBytes(part.source.getType()));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

static LogicalResult addCommand(ExecutableBuilder &builder, ltc::MatmulOp op) {
  auto a = cast<RankedTensorType>(op.getA().getType());
  auto b = cast<RankedTensorType>(op.getB().getType());
  auto c = cast<RankedTensorType>(op.getC().getType());
  FailureOr<runtime::DType> dtype =
      builder.getDType(c.getElementType(), op.getLoc());
  if (failed(dtype))
    return failure();
  int64_t m = c.getDimSize(c.getRank() - 2), n = c.getDimSize(c.getRank() - 1);
  int64_t k = op.getTransposeA() ? a.getDimSize(a.getRank() - 2)
                                 : a.getDimSize(a.getRank() - 1);
  int64_t batch = c.getRank() == 3 ? c.getDimSize(0) : 1;
  // If `b` is one matrix for the whole batch, the rows of the batch form one
  // tall matrix.
  if (a.getRank() == 3 && b.getRank() == 2 && !op.getTransposeA()) {
    m *= batch;
    batch = 1;
  }
  std::string sizes =
      std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  runtime::MatmulCall *call = builder.addCommand(op, sizes)->mutable_matmul();
  call->set_dtype(*dtype);
  call->set_batch(batch);
  call->set_m(m);
  call->set_n(n);
  call->set_k(k);
  call->set_transpose_a(op.getTransposeA());
  call->set_transpose_b(op.getTransposeB());
  call->set_batch_stride_a(a.getRank() == 3 && batch > 1 ? m * k : 0);
  call->set_batch_stride_b(b.getRank() == 3 && batch > 1 ? k * n : 0);
  builder.setPart(call->mutable_a(), op.getA());
  builder.setPart(call->mutable_b(), op.getB());
  builder.setPart(call->mutable_c(), op.getC());
  if (Value bias = op.getBias())
    builder.setPart(call->mutable_bias(), bias);
  return success();
}

static runtime::ConvolutionCall::Kind kindOf(ltc::ConvolutionOpInterface op) {
  if (isa<ltc::ConvolutionOp>(op))
    return runtime::ConvolutionCall::FORWARD;
  return isa<ltc::ConvolutionBackwardInputOp>(op)
             ? runtime::ConvolutionCall::BACKWARD_INPUT
             : runtime::ConvolutionCall::BACKWARD_WEIGHT;
}

/// Limits strides or dilations to what the runtime accepts. A larger step isn't
/// taken, because it is longer than any dim: the output or the window has size
/// 1 there.
static SmallVector<int64_t> limitSteps(ArrayRef<int64_t> steps) {
  constexpr int64_t longest = std::numeric_limits<int32_t>::max();
  return llvm::map_to_vector(
      steps, [&](int64_t step) { return std::min(step, longest); });
}

static LogicalResult addCommand(ExecutableBuilder &builder,
                                ltc::ConvolutionOpInterface op) {
  FailureOr<runtime::DType> dtype =
      builder.getDType(getElementTypeOrSelf(op.getInput()), op.getLoc());
  if (failed(dtype))
    return failure();
  runtime::ConvolutionCall *call =
      builder.addCommand(op)->mutable_convolution();
  call->set_kind(kindOf(op));
  call->set_dtype(*dtype);
  auto append = [](auto *list, ArrayRef<int64_t> values) {
    list->Add(values.begin(), values.end());
  };
  append(call->mutable_input_sizes(), sizesOf(op.getInput()));
  append(call->mutable_weight_sizes(), sizesOf(op.getWeight()));
  append(call->mutable_output_sizes(), sizesOf(op.getOutput()));
  append(call->mutable_stride(), limitSteps(op.getStride()));
  append(call->mutable_padding(), op.getPadding());
  append(call->mutable_dilation(), limitSteps(op.getDilation()));
  call->set_groups(op.getGroups());
  builder.setPart(call->mutable_input(), op.getInput());
  builder.setPart(call->mutable_weight(), op.getWeight());
  builder.setPart(call->mutable_output(), op.getOutput());
  if (Value bias = op.getBias())
    builder.setPart(call->mutable_bias(), bias);
  return success();
}

static LogicalResult addCommand(ExecutableBuilder &builder,
                                ltc::AttentionOpInterface op) {
  ArrayRef<int64_t> sizes = sizesOf(op.getQuery());
  int64_t keys = sizesOf(op.getKey())[2];
  std::string text;
  llvm::raw_string_ostream(text) << sizes[0] * sizes[1] << "x" << sizes[2]
                                 << "x" << keys << "x" << sizes[3];
  runtime::AttentionCall *call =
      builder.addCommand(op, text)->mutable_attention();
  call->set_causal(op.getCausal());
  call->set_batch(sizes[0]);
  call->set_heads(sizes[1]);
  call->set_length(sizes[2]);
  call->set_keys(keys);
  call->set_width(sizes[3]);
  call->set_value_width(sizesOf(op.getValue())[3]);
  builder.setPart(call->mutable_query(), op.getQuery());
  builder.setPart(call->mutable_key(), op.getKey());
  builder.setPart(call->mutable_value(), op.getValue());
  builder.setPart(call->mutable_output(), op.getOutput());
  builder.setPart(call->mutable_log_sum(), op.getLogSum());
  if (Value value = op.getMask()) {
    ArrayRef<int64_t> mask = sizesOf(value);
    builder.setPart(call->mutable_mask(), value);
    int64_t matrix = mask[2] * keys;
    call->set_mask_batch_stride(mask[0] == 1 ? 0 : mask[1] * matrix);
    call->set_mask_head_stride(mask[1] == 1 ? 0 : matrix);
    call->set_mask_row_stride(mask[2] == 1 ? 0 : keys);
  }
  if (auto backward = dyn_cast<ltc::AttentionBackwardOp>(op.getOperation())) {
    call->set_backward(true);
    builder.setPart(call->mutable_grad_output(), backward.getGradOutput());
    builder.setPart(call->mutable_grad_query(), backward.getGradQuery());
    builder.setPart(call->mutable_grad_key(), backward.getGradKey());
    builder.setPart(call->mutable_grad_value(), backward.getGradValue());
  }
  return success();
}

static void appendNumber(llvm::raw_ostream &text, double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%a", value);
  text << digits;
}

/// Appends one item of `LtcHostCall::arguments`.
static void appendArgument(llvm::raw_ostream &text, Attribute argument) {
  if (isa<UnitAttr>(argument)) {
    text << 'n';
  } else if (isa<TypeAttr>(argument)) {
    text << 't';
  } else if (auto list = dyn_cast<ArrayAttr>(argument);
             list && llvm::any_of(list, llvm::IsaPred<UnitAttr>)) {
    text << 'o';
    for (Attribute element : list)
      text << int(isa<TypeAttr>(element));
  } else if (list) {
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

static LogicalResult addCommand(ExecutableBuilder &builder,
                                ltc::HostCallOp op) {
  runtime::HostCall *call =
      builder.addCommand(op, getKindOfCommand(op))->mutable_host();
  call->set_op(op.getCallee().str());
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      op.getArguments(),
      [&](Attribute argument) { appendArgument(stream, argument); },
      [&] { stream << ';'; });
  call->set_arguments(text);
  for (auto [dtype, value] :
       llvm::zip_equal(op.getInputDtypes(), op.getInputs())) {
    if (failed(builder.setType(call->add_input_types(), value.getType(),
                               dtype.isUnsignedInteger(),
                               isa<ComplexType>(dtype), op.getLoc())))
      return failure();
    builder.setPart(call->add_inputs(), value);
  }
  for (auto [dtype, value] : llvm::zip_equal(
           op.getResultDtypes().getAsValueRange<TypeAttr>(), op.getOutputs())) {
    if (failed(builder.setType(call->add_output_types(), value.getType(),
                               dtype.isUnsignedInteger(),
                               isa<ComplexType>(dtype), op.getLoc())))
      return failure();
    builder.setPart(call->add_outputs(), value);
  }
  if (!op.getInputs().empty() && !op.getOutputs().empty())
    call->set_updates_input(builder.partOf(op.getInputs().back()) ==
                            builder.partOf(op.getOutputs().back()));
  return success();
}

//===----------------------------------------------------------------------===//
// The list of commands
//===----------------------------------------------------------------------===//

LogicalResult ExecutableBuilder::addCommands() {
  for (Operation &op : program.getBody().front()) {
    LogicalResult added =
        llvm::TypeSwitch<Operation *, LogicalResult>(&op)
            .Case<ltc::KernelCallOp, ltc::JoinOp, ltc::CheckBoundsOp,
                  ltc::MatmulOp, ltc::ConvolutionOpInterface,
                  ltc::AttentionOpInterface, ltc::HostCallOp>(
                [&](auto call) { return ::addCommand(*this, call); })
            .Default([](Operation *op) {
              if (getRole(op) != OpRole::Call)
                return success(); // a view, a constant or the terminator
              return LogicalResult(op->emitOpError(
                  "isn't a command: Commands.cpp has no message for it"));
            });
    if (failed(added))
      return failure();
  }
  return success();
}
