//===- Diagnostics.h - Errors inside and at the boundary of the runtime ---===//
//
// Inside the runtime an error is an `llvm::Error` with a one-sentence message
// for the user; at the C API it becomes an `LtcStatus`.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_DIAGNOSTICS_H
#define TORCH_LTC_RUNTIME_DIAGNOSTICS_H

#include "torch_ltc-c/status.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

#include <exception>
#include <new>

namespace torch_ltc::runtime {

/// An error with a message in `llvm::formatv` syntax.
template <typename... Args>
llvm::Error failure(const char *format, Args &&...args) {
  return llvm::createStringError(
      llvm::inconvertibleErrorCode(),
      llvm::formatv(format, std::forward<Args>(args)...).str());
}

inline LtcStatus toStatus(llvm::Error error) {
  if (!error)
    return nullptr;
  return ltcStatusCreate(llvm::toString(std::move(error)).c_str());
}

/// Runs `body`, which returns an llvm::Error, at the boundary of the C API.
/// Converts the error, or an exception that protobuf or oneDNN throws, to a
/// status.
template <typename Body> LtcStatus guarded(Body &&body) {
  try {
    return toStatus(body());
  } catch (const std::bad_alloc &) {
    return ltcStatusCreate("The machine is out of memory.");
  } catch (const std::exception &exception) {
    return ltcStatusCreate(exception.what());
  }
}

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_DIAGNOSTICS_H
