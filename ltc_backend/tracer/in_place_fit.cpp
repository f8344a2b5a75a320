//===- in_place_fit.cpp - In-place ops whose result is plain to see -------===//

#include "tracer/in_place.h"

#include <ATen/native/TypeProperties.h>

#include <algorithm>

using namespace torch_ltc;

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
  if (record.family != Family::elementwise &&
      record.name != "aten::fill.Scalar" && record.name != "aten::zero")
    return std::nullopt;
  const c10::OperatorName &own = record.handle->operator_name();
  // "pow.Tensor_Scalar" is written as "pow_.Scalar".
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

static bool broadcastsTo(at::IntArrayRef from, at::IntArrayRef to) {
  if (from.size() > to.size())
    return false;
  size_t offset = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && from[i] != to[offset + i])
      return false;
  return true;
}

bool torch_ltc::fitsInPlace(const OpRecord &functional,
                            c10::ArrayRef<c10::IValue> arguments,
                            bool (*isOurs)(const at::Tensor &)) {
  if (!arguments[0].isTensor() || !isOurs(arguments[0].toTensor()))
    return false;
  const at::Tensor &self = arguments[0].toTensor();
  at::native::ResultTypeState state;
  for (const c10::IValue &argument : arguments) {
    if (argument.isTensor()) {
      const at::Tensor &tensor = argument.toTensor();
      bool isNumber =
          tensor.defined() && tensor.device().is_cpu() && tensor.dim() == 0;
      if (!isNumber &&
          (!isOurs(tensor) || !broadcastsTo(tensor.sizes(), self.sizes())))
        return false;
      state = at::native::update_result_type_state(tensor, state);
    } else if (argument.isScalar()) {
      state = at::native::update_result_type_state(argument.toScalar(), state);
    } else if (argument.isTensorList() || argument.isOptionalTensorList()) {
      return false;
    }
  }
  c10::ScalarType type = at::native::result_type(state);
  if (functional.dtypeRule == DTypeRule::promote_floatDType &&
      c10::isIntegralType(type, /*includeBool=*/true))
    return false;
  return functional.dtypeRule == DTypeRule::selfDType ||
         c10::canCast(type, self.scalar_type());
}
