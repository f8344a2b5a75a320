//===- error_kind.h - Python exception class of an error --------*- C++ -*-===//

#ifndef TORCH_LTC_EVENTS_ERROR_KIND_H
#define TORCH_LTC_EVENTS_ERROR_KIND_H

#include <c10/util/Exception.h>

#include <string>

namespace torch_ltc {

enum class ErrorKind { Runtime, Index, Type, Value, LinAlg, NotImplemented };

ErrorKind kindOf(const c10::Error &error);

/// Throws an error of torch's class for `kind`.
[[noreturn]] void throwError(ErrorKind kind, const std::string &text);

} // namespace torch_ltc

#endif // TORCH_LTC_EVENTS_ERROR_KIND_H
