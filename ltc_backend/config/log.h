//===- log.h - Messages for the user ----------------------------*- C++ -*-===//
//
// Each message is one sentence. Messages go to the hook that the Python package
// installs; earlier ones are stored and passed to it. Without a hook, warnings
// and errors go to stderr. Any thread may log.
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

/// An empty hook logs warnings and errors to stderr.
void setLogHook(LogHook hook);

} // namespace torch_ltc

#endif // TORCH_LTC_CONFIG_LOG_H
