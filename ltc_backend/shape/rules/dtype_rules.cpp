//===- dtype_rules.cpp - Dtypes of results --------------------------------===//

#include "shape/rules/rules.h"

#include <ATen/native/TypeProperties.h>
#include <c10/core/DefaultDtype.h>

using namespace torch_ltc;
using at::ScalarType;

namespace {

ScalarType defaultFloat() { return c10::get_default_dtype_as_scalartype(); }

ScalarType toFloat(ScalarType type) {
  return c10::isIntegralType(type, /*includeBool=*/true) ? defaultFloat()
                                                         : type;
}

std::optional<ScalarType> dtypeArgument(const Arguments &arguments,
                                        std::string_view name = "dtype") {
  if (std::optional<size_t> position = arguments.find(name))
    return ScalarType(arguments[*position].toInt());
  return std::nullopt;
}

/// The dtype of the first tensor, or Undefined if there is none.
ScalarType firstDType(const Arguments &arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].isTensor() && arguments[i].toTensor().defined())
      return arguments.dtype(i);
  }
  return ScalarType::Undefined;
}

ScalarType dtypeOfNumber(const c10::IValue &value) {
  if (value.isBool())
    return ScalarType::Bool;
  if (value.isDouble() || value.isSymFloat())
    return defaultFloat();
  if (value.isComplexDouble())
    return c10::typeMetaToScalarType(c10::get_default_complex_dtype());
  return ScalarType::Long;
}

} // namespace

ScalarType dtype_rules::self(const Arguments &arguments) {
  return firstDType(arguments);
}

ScalarType dtype_rules::promote(const Arguments &arguments) {
  at::native::ResultTypeState state;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue &value = arguments[i];
    if (value.isTensor()) {
      const at::Tensor &tensor = value.toTensor();
      // The condition of `where` doesn't take part in type promotion.
      if (tensor.defined() && !(i == 0 && arguments.name(0) == "condition"))
        state = at::native::update_result_type_state(tensor, state);
    } else if (value.isTensorList()) {
      for (const c10::IValue &element : value.toListRef())
        state = at::native::update_result_type_state(element.toTensor(), state);
    } else if (value.isScalar() && arguments.isOperand(i)) {
      state = at::native::update_result_type_state(value.toScalar(), state);
    }
  }
  return at::native::result_type(state);
}

ScalarType dtype_rules::promote_float(const Arguments &arguments) {
  return toFloat(promote(arguments));
}

ScalarType dtype_rules::boolean(const Arguments &) { return ScalarType::Bool; }

// any() and all() of bytes return bytes, for compatibility with code older than
// torch.bool.
ScalarType dtype_rules::boolean_or_byte(const Arguments &arguments) {
  return firstDType(arguments) == ScalarType::Byte ? ScalarType::Byte
                                                   : ScalarType::Bool;
}

ScalarType dtype_rules::int64(const Arguments &) { return ScalarType::Long; }

ScalarType dtype_rules::argument(const Arguments &arguments) {
  if (std::optional<ScalarType> dtype = dtypeArgument(arguments))
    return *dtype;
  if (std::optional<ScalarType> dtype = dtypeArgument(arguments, "input_dtype"))
    return *dtype;
  ScalarType dtype = firstDType(arguments);
  return dtype == ScalarType::Undefined ? defaultFloat() : dtype;
}

ScalarType dtype_rules::sum(const Arguments &arguments) {
  if (std::optional<ScalarType> dtype = dtypeArgument(arguments))
    return *dtype;
  ScalarType dtype = firstDType(arguments);
  return c10::isIntegralType(dtype, /*includeBool=*/true) ? ScalarType::Long
                                                          : dtype;
}

ScalarType dtype_rules::div_mode(const Arguments &arguments) {
  return arguments.has(2) ? promote(arguments) : promote_float(arguments);
}

ScalarType dtype_rules::half_to_float(const Arguments &arguments) {
  return arguments.flag("half_to_float") ? ScalarType::Float
                                         : firstDType(arguments);
}

ScalarType dtype_rules::fill_value(const Arguments &arguments) {
  if (std::optional<ScalarType> dtype = dtypeArgument(arguments))
    return *dtype;
  return dtypeOfNumber(arguments[1]);
}

ScalarType dtype_rules::range(const Arguments &arguments) {
  if (std::optional<ScalarType> dtype = dtypeArgument(arguments))
    return *dtype;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].isDouble() || arguments[i].isSymFloat())
      return defaultFloat();
  return ScalarType::Long;
}
