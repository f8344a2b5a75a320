//===- argument_walk.h - From dispatcher arguments to a node ----*- C++ -*-===//
//
// Reads the arguments of one call as the op's record describes them: tensors
// become operands, numbers that change from step to step become dynamic
// scalars, and everything else becomes words (ir/attributes.h).
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_TRACING_ARGUMENT_WALK_H
#define TORCH_LTC_TRACING_ARGUMENT_WALK_H

#include "ir/node.h"

#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>

#include <string>

namespace torch_ltc {

class ArgumentWalk {
public:
  /// Throws c10::Error for CPU tensors, except arguments of rank 0 and indices,
  /// and for a lazy device that doesn't exist.
  ArgumentWalk(const OpRecord &record, c10::ArrayRef<c10::IValue> arguments);

  /// Why the call can't be traced (for example, "complex numbers"); "" if it
  /// can.
  const std::string &fallbackReason() const { return reason; }

  AttributeWriter attributes;
  c10::SmallVector<torch::lazy::Value, 4> operands;
  c10::SmallVector<DynamicScalar, 2> scalars;
  bool hasStridedOperand = false; // one that isn't row-major
  /// The result of type promotion, as torch computes it from the tensors and
  /// the numbers that take part.
  c10::ScalarType promoted = c10::ScalarType::Undefined;

private:
  void visit(const ArgumentSpec &spec, const c10::IValue &value);
  void visitTensor(const ArgumentSpec &spec, const at::Tensor &tensor);
  void visitNumberTensor(const at::Tensor &tensor);
  void visitTensorList(const ArgumentSpec &spec, const c10::IValue &value);
  void visitOptionalTensorList(const ArgumentSpec &spec,
                               const c10::IValue &value);
  void visitScalar(const ArgumentSpec &spec, const c10::IValue &value);
  void visitNumber(const ArgumentSpec &spec, const c10::IValue &value);
  void visitNumberList(const ArgumentSpec &spec, const c10::IValue &value);
  void addOperand(const at::Tensor &tensor);
  void addDynamicFloat(double value);
  void addComplexNumber(const at::Tensor &number);
  void setNumberTensorTypes();
  void setComplexNumberType(torch::lazy::Value &operand,
                            const at::Tensor &number);
  int64_t normalizedDim(const ArgumentSpec &spec, int64_t dim) const;
  [[noreturn]] void rejectCpuTensor(const ArgumentSpec &spec,
                                    const at::Tensor &tensor) const;
  void markUntraceable(std::string why) {
    if (reason.empty())
      reason = std::move(why);
  }

  const OpRecord &record;
  c10::ArrayRef<c10::IValue> arguments;
  at::native::ResultTypeState typeState;
  c10::SmallVector<size_t, 2> numberTensorWords; // positions of headers
  // By position among the operands.
  c10::SmallVector<std::pair<size_t, at::Tensor>, 1> complexNumbers;
  std::string reason;
};

/// Whether programs support tensors of this type.
bool isSupportedDType(c10::ScalarType type);
/// Why an op on tensors of that type runs eagerly; "" if programs support the
/// type.
std::string dtypeReason(c10::ScalarType type);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_ARGUMENT_WALK_H
