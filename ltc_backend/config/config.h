//===- config.h - Typed access to the configuration table -------*- C++ -*-===//
//
// Each row of config.def is one member of `Config`. An option has its default
// value unless the environment (read once, when the table is first used) or the
// program sets it. Reading is thread-safe and cheap.
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

/// What an option changes. The key of a cache contains the options that affect
/// what the cache holds: keys on disk contain the options with effect `Code`,
/// keys of programs in memory also those with effect `Program`, and keys of
/// captured functions also those with effect `Trace`.
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

/// All options with their current values, in the order of the table.
std::vector<OptionDescription> describeOptions();

/// Sets an option to a value of its type. Throws std::invalid_argument with a
/// one-sentence message for an unknown name, a wrong type or an invalid value.
void setOption(const std::string &name, const OptionValue &value);
/// Throws std::invalid_argument for an unknown name.
OptionValue getOption(const std::string &name);

/// The options with at least this effect and their values, as text for a key.
std::string optionsWithEffect(OptionEffect effect);
/// A hash of `optionsWithEffect(OptionEffect::Program)`; cheap.
uint64_t programOptionsHash();

/// The folder torch_ltc in the user's cache directory; "" if there is no home
/// directory.
std::string defaultCacheDirectory();

/// Returns a number that increases by one whenever an option is set, for code
/// that caches derived state.
uint64_t configVersion();

} // namespace torch_ltc

#endif // TORCH_LTC_CONFIG_CONFIG_H
