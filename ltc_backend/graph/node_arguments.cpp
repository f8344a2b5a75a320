//===- node_arguments.cpp - The arguments of a graph's op -----------------===//

#include "graph/node_arguments.h"

#include <ATen/Functions.h>
#include <ATen/ScalarOps.h>

#include <cstdlib>

using namespace torch_ltc;
using c10::IValue;

/// Casts a number without a check of its range, as eager does if the number is
/// combined with a tensor.
static at::Tensor castNumber(const DynamicScalar &number,
                             at::ScalarType dtype) {
  at::ScalarType own = number.isFloat ? at::kDouble : at::kLong;
  // The usual cases need neither a copy nor the dispatcher.
  constexpr int64_t exactInFloat = int64_t(1) << 24;
  auto makeNow = [&](double value) {
    return at::detail::scalar_tensor_static(value, dtype, at::kCPU);
  };
  if (dtype == at::kFloat && number.isFloat)
    return makeNow(double(float(number.asFloat)));
  if (dtype == at::kDouble && number.isFloat)
    return makeNow(number.asFloat);
  if (at::isFloatingType(dtype) && !at::isReducedFloatingType(dtype) &&
      !number.isFloat && std::abs(number.asInt) <= exactInFloat)
    return makeNow(double(number.asInt));
  at::Tensor tensor = number.isFloat ? at::scalar_tensor(number.asFloat, own)
                                     : at::scalar_tensor(number.asInt, own);
  return tensor.to(dtype);
}

IValue NodeArguments::build(const Attribute &attribute,
                            const ArgumentSpec &spec) {
  switch (attribute.tag) {
  case Tag::none:
    // Passes the traced dtype, because the default dtype may have changed.
    if (spec.kind == ArgumentKind::DType && !node.record->hasTensorArgument)
      return int64_t(node.shapes[0].scalar_type());
    return spec.defaultValue && !spec.defaultValue->isNone()
               ? *spec.defaultValue
               : IValue();
  case Tag::operand:
    return spec.kind == ArgumentKind::Scalar ? IValue(complexNumber())
                                             : IValue(nextOperand());
  case Tag::operandList:
    return operandList(attribute);
  case Tag::optionalOperandList:
    return optionalOperandList(attribute);
  case Tag::integer:
  case Tag::dtype:
    return attribute.integer();
  case Tag::floating:
    return attribute.floating();
  case Tag::boolean:
    return attribute.boolean();
  case Tag::integers:
    return attribute.integers().vec();
  case Tag::floatings: {
    std::vector<double> list;
    for (size_t i = 0; i < attribute.count; ++i)
      list.push_back(attribute.floatingAt(i));
    return list;
  }
  case Tag::booleans: {
    c10::List<bool> list;
    for (size_t i = 0; i < attribute.count; ++i)
      list.push_back(attribute.payload[i] != 0);
    return list;
  }
  case Tag::string:
    return attribute.string();
  case Tag::dynamicInt:
    return scalars[scalar++].asInt;
  case Tag::dynamicFloat:
    return scalars[scalar++].asFloat;
  case Tag::dynamicIntegers: {
    std::vector<int64_t> list;
    for (size_t i = 0; i < attribute.count; ++i)
      list.push_back(scalars[scalar++].asInt);
    return list;
  }
  case Tag::numberTensor:
    return numberTensor(attribute);
  }
  return IValue();
}

/// The next operand as a number. A tensor without data stands for any number,
/// because sizes don't depend on complex numbers.
at::Scalar NodeArguments::complexNumber() {
  const at::Tensor value = nextOperand();
  return value.is_meta() ? at::Scalar(c10::complex<double>(0, 1))
                         : value.item();
}

at::Tensor NodeArguments::nextOperand() {
  ResultRef ref = graph.operands[operand++];
  const at::Tensor &value = values[ref.position][ref.index];
  // Integers are converted to the dtype that was the default when the op was
  // traced.
  if ((node.record->dtypeRule == DTypeRule::promote_floatDType ||
       node.record->dtypeRule == DTypeRule::div_modeDType) &&
      c10::isFloatingType(node.shapes[0].scalar_type()) &&
      c10::isIntegralType(value.scalar_type(), /*includeBool=*/true))
    return value.to(node.shapes[0].scalar_type());
  return value;
}

IValue NodeArguments::operandList(const Attribute &attribute) {
  c10::List<at::Tensor> list;
  for (size_t i = 0; i < attribute.count; ++i)
    list.push_back(nextOperand());
  return list;
}

IValue NodeArguments::optionalOperandList(const Attribute &attribute) {
  c10::List<std::optional<at::Tensor>> list;
  for (size_t i = 0; i < attribute.count; ++i)
    list.push_back(attribute.isPresent(i) ? std::optional(nextOperand())
                                          : std::nullopt);
  return list;
}

IValue NodeArguments::numberTensor(const Attribute &attribute) {
  const DynamicScalar &number = scalars[scalar++];
  // Wrapped numbers of a 16-bit dtype are passed as doubles, because kernels
  // for 16-bit floats don't round them.
  bool isWrapped = attribute.count & 2;
  auto dtype = c10::ScalarType(attribute.small);
  if (!isWrapped || !at::isReducedFloatingType(dtype))
    return castNumber(number, dtype);
  at::Scalar value =
      number.isFloat ? at::Scalar(number.asFloat) : at::Scalar(number.asInt);
  at::Tensor tensor = at::scalar_tensor(value, at::kDouble);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}
