//===- op_error.h - Errors with the op and the user's line ------*- C++ -*-===//

#ifndef TORCH_LTC_EVENTS_OP_ERROR_H
#define TORCH_LTC_EVENTS_OP_ERROR_H

#include <c10/util/Exception.h>

#include <string>

namespace torch_ltc {

/// Rethrows `error`, with the same Python class, and with the op's name and the
/// user's line appended to its message.
[[noreturn]] void rethrowWithOp(const c10::Error &error,
                                const std::string &opName);

/// Returns a suffix for a message: " [aten::mm on device 'lazy', at
/// /home/me/train.py:31]".
std::string opSuffix(const std::string &opName);

} // namespace torch_ltc

#endif // TORCH_LTC_EVENTS_OP_ERROR_H
