//===- config.h - Typed access to the configuration table -------*- C++ -*-===//
//
// Each row of config.def is one member of `Config`. Values come from the
// default, then the environment (read once, when the table is first used), then
// the program. Reading is thread-safe and cheap.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONFIG_CONFIG_H
#define TORCH_LTC_CONFIG_CONFIG_H

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

namespace torch_ltc {

using OptionValue = std::variant<bool, int64_t, std::string>;

/// What an option changes. Keys contain all options whose effect they would
/// otherwise miss: those on disk `Code`, those of programs in memory also
/// `Program`, those of captured functions also `Trace`.
enum class OptionEffect {
  None,
  Trace,   // which ops are traced, which programs are chosen
  Program, // how a program runs
  Code,    // what the compiler generates
};

enum class OptionSource { Default, Environment, Program };

template <typename T> class Option {
public:
  T get() const { return value.load(std::memory_order_relaxed); }
  void set(T newValue) { value.store(newValue, std::memory_order_relaxed); }

private:
  std::atomic<T> value{};
};

template <> class Option<std::string> {
public:
  std::string get() const {
    std::lock_guard<std::mutex> lock(mutex);
    return value;
  }
  void set(std::string newValue) {
    std::lock_guard<std::mutex> lock(mutex);
    value = std::move(newValue);
  }

private:
  mutable std::mutex mutex;
  std::string value;
};

struct Config {
#define LTC_OPTION(Type, Name, ...) Option<Type> Name;
#include "config/config.def"
};

/// The process's configuration.
Config &config();

struct OptionDescription {
  const char *name;
  const char *type; // "bool", "int", "str"
  OptionValue defaultValue;
  OptionValue value;
  OptionSource source;
  const char *environment;
  const char *help;
  std::vector<std::string> choices;
  OptionEffect effect;
};

/// The table with its current values, in order.
std::vector<OptionDescription> describeOptions();

/// Sets an option; text is parsed as from the environment. Throws
/// std::invalid_argument with a one-sentence message for an unknown name, a
/// wrong type or an invalid value.
void setOption(const std::string &name, const OptionValue &value);
/// Throws std::invalid_argument for an unknown name.
OptionValue getOption(const std::string &name);

/// The options with at least this effect and their values, as text for a key.
std::string optionsWithEffect(OptionEffect effect);
/// A hash of `optionsWithEffect(OptionEffect::Program)`; cheap.
uint64_t programOptionsHash();

/// torch_ltc in the user's cache directory, "" without a home directory.
std::string defaultCacheDirectory();

/// Increases by one whenever an option is set: for code that caches derived
/// state.
uint64_t configVersion();

} // namespace torch_ltc

#endif // TORCH_LTC_CONFIG_CONFIG_H
