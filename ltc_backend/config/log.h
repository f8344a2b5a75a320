//===- log.h - Messages for the user ----------------------------*- C++ -*-===//
//
// Each message is one sentence. Messages go to the hook that the Python package
// installs; the first 64 messages logged earlier are stored until then. If the
// hook is removed, warnings and errors go to stderr. Any thread may log.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONFIG_LOG_H
#define TORCH_LTC_CONFIG_LOG_H

#include <functional>
#include <string>

namespace torch_ltc {

/// The values are those of Python's logging module.
enum class LogLevel : int { Debug = 10, Info = 20, Warning = 30, Error = 40 };

void log(LogLevel level, const std::string &sentence);

using LogHook = std::function<void(LogLevel, const std::string &)>;

/// Sets the hook and passes it the stored messages. If `hook` is empty,
/// warnings and errors go to stderr.
void setLogHook(LogHook hook);

} // namespace torch_ltc

#endif // TORCH_LTC_CONFIG_LOG_H
