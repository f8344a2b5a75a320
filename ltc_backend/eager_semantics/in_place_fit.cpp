//===- in_place_fit.cpp - In-place ops whose result is predictable --------===//

#include "eager_semantics/in_place.h"
#include "ir/tensor_arguments.h"
#include "shape/shape_inference.h"

#include <ATen/native/TypeProperties.h>

#include <algorithm>

using namespace torch_ltc;
using c10::IValue;

static bool takeTheSame(const c10::FunctionSchema &a,
                        const c10::FunctionSchema &b) {
  return std::equal(a.arguments().begin(), a.arguments().end(),
                    b.arguments().begin(), b.arguments().end(),
                    [](const c10::Argument &x, const c10::Argument &y) {
                      return x.name() == y.name() && *x.type() == *y.type();
                    });
}

std::optional<c10::OperatorHandle>
torch_ltc::elementwiseInPlace(const OpRecord &record) {
  // Constructors include `fill` and `zero`; the others have no in-place form.
  if (record.family != Family::elementwise &&
      record.family != Family::constructor)
    return std::nullopt;
  const c10::OperatorName &own = record.handle->operator_name();
  // The in-place form of "pow.Tensor_Scalar" is "pow_.Scalar".
  size_t underscore = own.overload_name.find('_');
  for (const std::string &overload :
       {own.overload_name, own.overload_name.substr(underscore + 1),
        std::string("Tensor")}) {
    auto op =
        c10::Dispatcher::singleton().findSchema({own.name + "_", overload});
    if (op && op->schema().returns().size() == 1 &&
        takeTheSame(op->schema(), record.handle->schema()))
      return op;
  }
  return std::nullopt;
}

std::optional<c10::OperatorHandle>
torch_ltc::functionalOf(const c10::OperatorHandle &inPlace) {
  const c10::OperatorName &own = inPlace.operator_name();
  std::string name = own.name.substr(0, own.name.size() - 1);
  // The functional form of "pow_.Scalar" is "pow.Tensor_Scalar", and that of
  // "ldexp_" is "ldexp.Tensor".
  for (const std::string &overload :
       {own.overload_name, "Tensor_" + own.overload_name, std::string(),
        std::string("Tensor")}) {
    auto op = c10::Dispatcher::singleton().findSchema({name, overload});
    if (op && !op->schema().is_mutable() &&
        op->schema().returns().size() == 1 &&
        takeTheSame(op->schema(), inPlace.schema()))
      return op;
  }
  return std::nullopt;
}

static bool broadcastsTo(at::IntArrayRef from, at::IntArrayRef to) {
  if (from.size() > to.size())
    return false;
  size_t offset = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && from[i] != to[offset + i])
      return false;
  return true;
}

/// The dtype to which all tensors and numbers are promoted, if there is one.
static std::optional<at::ScalarType>
commonType(c10::ArrayRef<IValue> arguments) {
  at::native::ResultTypeState state;
  try {
    for (const IValue &argument : arguments)
      if (argument.isTensor())
        state =
            at::native::update_result_type_state(argument.toTensor(), state);
      else if (argument.isScalar())
        state =
            at::native::update_result_type_state(argument.toScalar(), state);
    return at::native::result_type(state);
  } catch (const c10::Error &) {
    return std::nullopt; // for example, int32 and uint16 have none
  }
}

bool torch_ltc::fitsInPlace(const OpRecord &functional,
                            c10::ArrayRef<IValue> arguments,
                            bool (*isOurs)(const at::Tensor &)) {
  if (!arguments[0].isTensor() || !isOurs(arguments[0].toTensor()))
    return false;
  const at::Tensor &self = arguments[0].toTensor();
  // torch rejects a value whose rank isn't 0.
  if (functional.shapeRule == ShapeRule::fillShape &&
      arguments[1].toTensor().dim() != 0)
    return false;
  if (functional.realResult && self.is_complex()) // which eager rejects
    return false;
  for (const IValue &argument : arguments) {
    if (argument.isTensor()) {
      const at::Tensor &tensor = argument.toTensor();
      bool isNumber =
          tensor.defined() && tensor.device().is_cpu() && tensor.dim() == 0;
      if (!isNumber &&
          (!isOurs(tensor) || !broadcastsTo(tensor.sizes(), self.sizes())))
        return false;
    } else if (argument.isTensorList() || isOptionalTensorList(argument)) {
      return false;
    }
  }
  if (functional.dtypeRule == DTypeRule::selfDType)
    return true;
  std::optional<at::ScalarType> type = commonType(arguments);
  if (!type)
    return false; // the functional op raises the error
  if (functional.dtypeRule == DTypeRule::booleanDType)
    type = c10::ScalarType::Bool;
  bool isFloatResult = functional.dtypeRule == DTypeRule::promote_floatDType ||
                       (functional.dtypeRule == DTypeRule::div_modeDType &&
                        arguments[2].isNone());
  if (isFloatResult && c10::isIntegralType(*type, /*includeBool=*/true))
    return false;
  return c10::canCast(*type, self.scalar_type());
}

/// The dtype of the functional op's result, if the dtype rule is simple.
static std::optional<at::ScalarType>
resultType(const OpRecord &record, c10::ArrayRef<IValue> arguments) {
  if (record.dtypeRule == DTypeRule::selfDType)
    return arguments[0].isTensor() && arguments[0].toTensor().defined()
               ? std::optional(arguments[0].toTensor().scalar_type())
               : std::nullopt;
  if (record.dtypeRule != DTypeRule::promoteDType &&
      record.dtypeRule != DTypeRule::promote_floatDType)
    return std::nullopt;
  at::native::ResultTypeState state;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const IValue &argument = arguments[i];
    if (argument.isTensor() && argument.toTensor().defined())
      state = at::native::update_result_type_state(argument.toTensor(), state);
    else if (argument.isTensorList())
      for (const at::Tensor &tensor : argument.toTensorVector())
        state = at::native::update_result_type_state(tensor, state);
    else if (argument.isScalar() && isPromotedNumber(record.arguments[i].name))
      state = at::native::update_result_type_state(argument.toScalar(), state);
  }
  at::ScalarType type = at::native::result_type(state);
  bool becomesFloat = record.dtypeRule == DTypeRule::promote_floatDType &&
                      c10::isIntegralType(type, /*includeBool=*/true);
  return becomesFloat ? c10::get_default_dtype_as_scalartype() : type;
}

void torch_ltc::checkCast(at::ScalarType from, at::ScalarType to) {
  TORCH_CHECK(c10::canCast(from, to), "result type ", from,
              " can't be cast to the desired output type ", to);
}

void torch_ltc::checkResultFits(const OpRecord &functional,
                                c10::ArrayRef<IValue> arguments,
                                at::ScalarType written) {
  std::optional<at::ScalarType> type = resultType(functional, arguments);
  if (type)
    checkCast(*type, written);
}

bool torch_ltc::castsTo(const OpRecord &functional,
                        c10::ArrayRef<IValue> arguments,
                        at::ScalarType written) {
  std::optional<at::ScalarType> type = resultType(functional, arguments);
  return type && c10::canCast(*type, written);
}
