//===- typed_op.h - Calls of the library's own ops --------------*- C++ -*-===//

#ifndef TORCH_LTC_TRACING_TYPED_OP_H
#define TORCH_LTC_TRACING_TYPED_OP_H

#include <ATen/core/dispatch/Dispatcher.h>

#include <type_traits>

namespace torch_ltc {

/// The op `name` ("torch_ltc::lstm_gates") whose eager kernel is `function`.
/// The op is looked up once for each function, which must belong to one op.
template <auto function> const auto &typedOp(const char *name) {
  using Signature = std::remove_pointer_t<decltype(function)>;
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow(name, "")
                             .typed<Signature>();
  return op;
}

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_TYPED_OP_H
