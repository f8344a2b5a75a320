//===- ExecutableNumbers.h - The numbers that depend on sizes ---*- C++ -*-===//

#ifndef TORCH_LTC_RUNTIME_EXECUTABLENUMBERS_H
#define TORCH_LTC_RUNTIME_EXECUTABLENUMBERS_H

#include "executable.pb.h"

#include "llvm/ADT/StringRef.h"

namespace torch_ltc::runtime {

/// Calls `visitNumber(int64_t &)` with each number of an executable that may
/// depend on the sizes of tensors, in a fixed order, and stores the value that
/// the function assigns. Calls `visitPart(const BufferRef &)` with each operand
/// of a command. Absent operands stay absent.
template <typename NumberFunction, typename PartFunction>
class ExecutableVisitor {
public:
  ExecutableVisitor(NumberFunction &visitNumber, PartFunction &visitPart)
      : visitNumber(visitNumber), visitPart(visitPart) {}

  void visitAll(Executable &executable) {
    for (Parameter &parameter : *executable.mutable_parameters())
      type(*parameter.mutable_type());
    for (Output &output : *executable.mutable_outputs())
      type(*output.mutable_type());
    for (Kernel &kernel : *executable.mutable_kernels()) {
      for (KernelOperand &operand : *kernel.mutable_operands())
        number(operand, &KernelOperand::bytes, &KernelOperand::set_bytes);
      number(kernel, &Kernel::trip_count, &Kernel::set_trip_count);
    }
    for (Buffer &buffer : *executable.mutable_buffers())
      if (!buffer.has_constant()) // a constant has a fixed size
        number(buffer, &Buffer::bytes, &Buffer::set_bytes);
    for (Command &command : *executable.mutable_commands())
      visitCommand(command);
  }

  void visitCommand(Command &command) {
    switch (command.call_case()) {
#define RUNTIME_CALL(Name, field)                                              \
  case Command::k##Name:                                                       \
    return visit(*command.mutable_##field());
#include "Calls.def"
    case Command::CALL_NOT_SET:
      return;
    }
  }

private:
  template <typename Message, typename Field, typename Argument>
  void number(Message &message, Field (Message::*get)() const,
              void (Message::*set)(Argument)) {
    int64_t value = int64_t((message.*get)());
    visitNumber(value);
    (message.*set)(Argument(value));
  }
  void list(google::protobuf::RepeatedField<int64_t> &values) {
    for (int64_t &value : values)
      visitNumber(value);
  }
  void type(TensorType &type) { list(*type.mutable_sizes()); }
  void part(BufferRef &reference) {
    visitPart(reference);
    number(reference, &BufferRef::offset, &BufferRef::set_offset);
  }

  void visit(KernelCall &call) {
    for (BufferRef &argument : *call.mutable_arguments())
      part(argument);
    number(call, &KernelCall::trip_count, &KernelCall::set_trip_count);
    number(call, &KernelCall::grain, &KernelCall::set_grain);
  }

  void visit(MatmulCall &call) {
    number(call, &MatmulCall::batch, &MatmulCall::set_batch);
    number(call, &MatmulCall::m, &MatmulCall::set_m);
    number(call, &MatmulCall::n, &MatmulCall::set_n);
    number(call, &MatmulCall::k, &MatmulCall::set_k);
    number(call, &MatmulCall::batch_stride_a, &MatmulCall::set_batch_stride_a);
    number(call, &MatmulCall::batch_stride_b, &MatmulCall::set_batch_stride_b);
    if (call.has_a())
      part(*call.mutable_a());
    if (call.has_b())
      part(*call.mutable_b());
    if (call.has_c())
      part(*call.mutable_c());
    if (call.has_bias())
      part(*call.mutable_bias());
  }

  void visit(ConvolutionCall &call) {
    list(*call.mutable_input_sizes());
    list(*call.mutable_weight_sizes());
    list(*call.mutable_output_sizes());
    list(*call.mutable_stride());
    list(*call.mutable_padding());
    list(*call.mutable_dilation());
    if (call.has_input())
      part(*call.mutable_input());
    if (call.has_weight())
      part(*call.mutable_weight());
    if (call.has_output())
      part(*call.mutable_output());
    if (call.has_bias())
      part(*call.mutable_bias());
  }

  void visit(AttentionCall &call) {
    number(call, &AttentionCall::batch, &AttentionCall::set_batch);
    number(call, &AttentionCall::heads, &AttentionCall::set_heads);
    number(call, &AttentionCall::length, &AttentionCall::set_length);
    number(call, &AttentionCall::keys, &AttentionCall::set_keys);
    number(call, &AttentionCall::width, &AttentionCall::set_width);
    number(call, &AttentionCall::value_width, &AttentionCall::set_value_width);
    number(call, &AttentionCall::mask_batch_stride,
           &AttentionCall::set_mask_batch_stride);
    number(call, &AttentionCall::mask_head_stride,
           &AttentionCall::set_mask_head_stride);
    number(call, &AttentionCall::mask_row_stride,
           &AttentionCall::set_mask_row_stride);
    if (call.has_query())
      part(*call.mutable_query());
    if (call.has_key())
      part(*call.mutable_key());
    if (call.has_value())
      part(*call.mutable_value());
    if (call.has_mask())
      part(*call.mutable_mask());
    if (call.has_output())
      part(*call.mutable_output());
    if (call.has_log_sum())
      part(*call.mutable_log_sum());
    if (call.has_grad_output())
      part(*call.mutable_grad_output());
    if (call.has_grad_query())
      part(*call.mutable_grad_query());
    if (call.has_grad_key())
      part(*call.mutable_grad_key());
    if (call.has_grad_value())
      part(*call.mutable_grad_value());
  }

  void visit(CopyCall &call) {
    if (call.has_source())
      part(*call.mutable_source());
    if (call.has_destination())
      part(*call.mutable_destination());
    number(call, &CopyCall::bytes, &CopyCall::set_bytes);
  }

  void visit(FillCall &call) {
    if (call.has_destination())
      part(*call.mutable_destination());
    number(call, &FillCall::bytes, &FillCall::set_bytes);
  }

  void visit(BoundsCheck &check) {
    if (check.has_indices())
      part(*check.mutable_indices());
    number(check, &BoundsCheck::count, &BoundsCheck::set_count);
    number(check, &BoundsCheck::lower, &BoundsCheck::set_lower);
    number(check, &BoundsCheck::upper, &BoundsCheck::set_upper);
  }

  /// Visits the integers among the items of `HostCall::arguments`.
  void integers(HostCall &call) {
    std::string arguments;
    bool isChanged = false;
    for (llvm::StringRef rest = call.arguments(); !rest.empty();) {
      auto [item, others] = rest.split(';');
      bool hasMore = rest.size() > item.size();
      rest = others;
      bool isInteger = item.starts_with("i");
      if (isInteger || (item.starts_with("I") && item.size() > 1)) {
        arguments += item.front();
        llvm::StringRef numbers = item.drop_front();
        do {
          auto [text, more] = numbers.split(',');
          int64_t value = 0;
          text.getAsInteger(10, value);
          int64_t former = value;
          visitNumber(value);
          isChanged |= value != former;
          arguments += std::to_string(value);
          if (!more.empty())
            arguments += ',';
          numbers = more;
        } while (!numbers.empty());
      } else {
        arguments += item;
      }
      if (hasMore)
        arguments += ';';
    }
    if (isChanged)
      call.set_arguments(arguments);
  }

  void visit(HostCall &call) {
    integers(call);
    for (TensorType &input : *call.mutable_input_types())
      type(input);
    for (BufferRef &input : *call.mutable_inputs())
      part(input);
    for (TensorType &output : *call.mutable_output_types())
      type(output);
    for (BufferRef &output : *call.mutable_outputs())
      part(output);
  }

  NumberFunction &visitNumber;
  PartFunction &visitPart;
};

/// Visits the numbers that are set when a general executable is bound. Arena
/// offsets aren't among them: each bound executable has its own plan.
template <typename Function>
void forEachNumber(Executable &executable, Function visitNumber) {
  auto ignore = [](const BufferRef &) {};
  ExecutableVisitor(visitNumber, ignore).visitAll(executable);
}

/// Visits the parts of buffers that a command uses.
template <typename Function>
void forEachPart(Command &command, Function visitPart) {
  auto ignore = [](int64_t &) {};
  ExecutableVisitor(ignore, visitPart).visitCommand(command);
}

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_EXECUTABLENUMBERS_H
