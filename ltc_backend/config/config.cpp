//===- config.cpp - The configuration table -------------------------------===//

#include "config/config.h"

#include "config/log.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <stdexcept>

using namespace torch_ltc;

namespace {

struct Row {
  const char *name;
  const char *environment;
  const char *otherEnvironment;
  OptionEffect effect;
  const char *choices;
  const char *help;
  OptionValue defaultValue;
  OptionValue (*get)(const Config &);
  void (*set)(Config &, const OptionValue &);
  OptionSource source = OptionSource::Default;
};

std::atomic<uint64_t> version{0}, programOptions{0};
std::mutex tableMutex;

std::vector<Row> &rows() {
  static std::vector<Row> table = {
#define LTC_OPTION(Type, Name, Default, Env, OtherEnv, Effect, Choices, Help)  \
  Row{#Name,                                                                   \
      Env,                                                                     \
      OtherEnv,                                                                \
      OptionEffect::Effect,                                                    \
      Choices,                                                                 \
      Help,                                                                    \
      OptionValue(Type(Default)),                                              \
      [](const Config &c) { return OptionValue(c.Name.get()); },               \
      [](Config &c, const OptionValue &v) { c.Name.set(std::get<Type>(v)); }},
#include "config/config.def"
  };
  return table;
}

std::vector<std::string> splitText(const std::string &text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Stands for any non-negative number in an option's choices.
constexpr const char *anyNumber = "<number>";

std::string listed(const std::vector<std::string> &choices) {
  std::string text;
  for (const std::string &choice : choices)
    text += (text.empty() ? "" : ", ") + (choice.empty() ? "the empty string"
                                          : choice == anyNumber
                                              ? "a non-negative number"
                                              : choice);
  return text;
}

bool isChosen(const std::string &choice, const std::string &text) {
  if (choice != anyNumber)
    return choice == text;
  double number = -1;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() &&
         number >= 0;
}

const char *typeName(const OptionValue &value) {
  static const char *const names[] = {"bool", "int", "str"};
  return names[value.index()];
}

/// Parses a value of the option; throws std::invalid_argument with the expected
/// form.
OptionValue parse(const Row &row, const std::string &text) {
  if (std::holds_alternative<bool>(row.defaultValue)) {
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    for (const char *word : {"1", "true", "on", "yes"})
      if (lower == word)
        return true;
    for (const char *word : {"0", "false", "off", "no"})
      if (lower == word)
        return false;
    throw std::invalid_argument("1, true, on, yes, 0, false, off or no");
  }
  if (std::holds_alternative<int64_t>(row.defaultValue)) {
    int64_t number = 0;
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      throw std::invalid_argument("a whole number");
    return number;
  }
  return text;
}

void checkOptionValue(const Row &row, const OptionValue &value) {
  if (const int64_t *number = std::get_if<int64_t>(&value))
    if (*number < 0)
      throw std::invalid_argument("a number that is 0 or more");
  std::vector<std::string> choices = splitText(row.choices, '|');
  const std::string *text = std::get_if<std::string>(&value);
  if (text && !choices.empty() &&
      std::none_of(choices.begin(), choices.end(),
                   [&](const std::string &c) { return isChosen(c, *text); }))
    throw std::invalid_argument("one of " + listed(choices));
}

void readEnvironment(Config &config, Row &row) {
  for (const char *variable : {row.environment, row.otherEnvironment}) {
    const char *text = *variable ? std::getenv(variable) : nullptr;
    if (!text)
      continue;
    try {
      OptionValue value = parse(row, text);
      checkOptionValue(row, value);
      row.set(config, value);
      row.source = OptionSource::Environment;
      return;
    } catch (const std::invalid_argument &expected) {
      log(LogLevel::Warning, std::string(variable) + "='" + text +
                                 "' is ignored: the value must be " +
                                 expected.what() + ".");
    }
  }
}

size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> line(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    line[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = line[0];
    line[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = line[j];
      line[j] = std::min({above + 1, line[j - 1] + 1,
                          diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return line[b.size()];
}

Row &find(const std::string &name) {
  for (Row &row : rows())
    if (name == row.name)
      return row;
  auto nearest = std::min_element(
      rows().begin(), rows().end(), [&](const Row &a, const Row &b) {
        return editDistance(name, a.name) < editDistance(name, b.name);
      });
  throw std::invalid_argument("There is no option '" + name +
                              "'; the nearest is '" + nearest->name + "'.");
}

std::string keyOf(const Config &config, OptionEffect effect) {
  std::string text;
  for (const Row &row : rows()) {
    if (row.effect < effect)
      continue;
    text += std::string(row.name) + "=";
    OptionValue value = row.get(config);
    if (const std::string *word = std::get_if<std::string>(&value))
      text += *word;
    else if (const int64_t *number = std::get_if<int64_t>(&value))
      text += std::to_string(*number);
    else
      text += std::get<bool>(value) ? "1" : "0";
    text += ";";
  }
  return text;
}

uint64_t hashOfPrograms(const Config &config) {
  return std::hash<std::string>()(keyOf(config, OptionEffect::Program));
}

} // namespace

Config &torch_ltc::config() {
  // Never destroyed: the worker thread may read it during process exit.
  static Config *table = [] {
    auto *config = new Config;
    for (Row &row : rows()) {
      row.set(*config, row.defaultValue);
      readEnvironment(*config, row);
    }
    programOptions = hashOfPrograms(*config);
    return config;
  }();
  return *table;
}

std::vector<OptionDescription> torch_ltc::describeOptions() {
  Config &values = config();
  std::lock_guard<std::mutex> lock(tableMutex);
  std::vector<OptionDescription> result;
  for (const Row &row : rows())
    result.push_back({row.name, typeName(row.defaultValue), row.defaultValue,
                      row.get(values), row.source, row.environment, row.help,
                      splitText(row.choices, '|'), row.effect});
  return result;
}

void torch_ltc::setOption(const std::string &name, const OptionValue &given) {
  Config &values = config();
  std::lock_guard<std::mutex> lock(tableMutex);
  Row &row = find(name);
  try {
    if (given.index() != row.defaultValue.index())
      throw std::invalid_argument(std::string("of type ") +
                                  typeName(row.defaultValue));
    checkOptionValue(row, given);
    // The compiler's options can't be changed later, because the backend reads
    // them when it is initialized.
    if (row.effect == OptionEffect::Code && given != row.get(values))
      throw std::invalid_argument(std::string("set by the variable ") +
                                  row.environment +
                                  " before torch is imported");
    row.set(values, given);
  } catch (const std::invalid_argument &expected) {
    throw std::invalid_argument("Option '" + name + "' must be " +
                                expected.what() + ".");
  }
  row.source = OptionSource::Program;
  version.fetch_add(1);
  programOptions = hashOfPrograms(values);
}

OptionValue torch_ltc::getOption(const std::string &name) {
  Config &values = config();
  return find(name).get(values);
}

std::string torch_ltc::optionsWithEffect(OptionEffect effect) {
  return keyOf(config(), effect);
}

uint64_t torch_ltc::programOptionsHash() {
  config(); // reads the environment
  return programOptions.load(std::memory_order_relaxed);
}

std::string torch_ltc::defaultCacheDirectory() {
  if (const char *folder = std::getenv("XDG_CACHE_HOME"); folder && *folder)
    return std::string(folder) + "/torch_ltc";
  if (const char *home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/torch_ltc";
  return "";
}

uint64_t torch_ltc::configVersion() { return version.load(); }
