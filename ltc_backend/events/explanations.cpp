//===- explanations.cpp - Log messages for events -------------------------===//

#include "events/explanations.h"

#include "config/log.h"

#include <cstdio>
#include <map>
#include <mutex>

using namespace torch_ltc;

namespace {

bool isPowerOfTen(int64_t number) {
  while (number > 1 && number % 10 == 0)
    number /= 10;
  return number == 1;
}

std::string inMilliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", seconds * 1e3);
  return text;
}

std::string atLine(const std::string &location) {
  return location.empty() ? "" : " at " + location;
}

std::string soFar(int64_t calls) {
  return calls == 1 ? "" : " It was call " + std::to_string(calls) + ".";
}

/// Logs the first occurrence as information and later ones, which belong to a
/// pattern, as warnings.
void say(int64_t calls, const std::string &sentence) {
  log(calls == 1 ? LogLevel::Info : LogLevel::Warning, sentence);
}

} // namespace

void torch_ltc::explainSync(const CallLogRow &event) {
  static std::mutex mutex;
  static auto *callsOfLine =
      new std::map<std::pair<std::string, std::string>, int64_t>;
  int64_t calls;
  {
    std::lock_guard<std::mutex> lock(mutex);
    calls = ++(*callsOfLine)[{event.op, event.location}];
  }
  if (calls != 1 && calls != 10)
    return;
  say(calls, event.op + atLine(event.location) +
                 " needed a value in the middle of a step: " +
                 std::to_string(event.ops) +
                 " traced ops were cut off and run separately (" +
                 inMilliseconds(event.seconds) + ")." + soFar(calls) +
                 " Read values after the end of the step, or in "
                 "torch_ltc.add_step_closure.");
}

void torch_ltc::explainFallback(const CallLogRow &event, int64_t calls) {
  if (!isPowerOfTen(calls))
    return;
  std::string cuts =
      event.syncs == 0 ? "didn't cut the graph."
      : event.syncs == 1
          ? "cut the graph once."
          : "cut the graph " + std::to_string(event.syncs) + " times.";
  say(calls, event.op + atLine(event.location) + " ran eagerly on the CPU (" +
                 event.reason + "), which took " +
                 inMilliseconds(event.seconds) + ", moved " +
                 std::to_string(event.bytes) + " bytes and " + cuts +
                 soFar(calls));
}

void torch_ltc::explainUndonated(
    const std::vector<std::pair<std::string, std::string>> &names,
    LocationId location) {
  if (names.empty())
    return;
  const auto &[name, reason] = names.front();
  std::string others;
  if (names.size() > 1)
    others = " (and " + std::to_string(names.size() - 1) + " more)";
  log(LogLevel::Info, "The step" + atLine(shortText(location)) +
                          " doesn't overwrite '" + name + "'" + others +
                          " in place: " + reason +
                          ". torch_ltc.explain shows what holds it.");
}

void torch_ltc::explainCompilation(const CompileEvent &event) {
  static std::mutex mutex;
  static auto *programsOfLine = new std::map<std::string, int64_t>;
  int64_t programs;
  {
    std::lock_guard<std::mutex> lock(mutex);
    programs = ++(*programsOfLine)[event.location];
  }
  const bool isPattern = isPowerOfTen(programs) && programs > 1;
  // Finding the reason takes longer than an op-by-op run of a short program.
  if (!isPattern && event.origin == "interpreted")
    return;
  std::string sentence = "Step " + std::to_string(event.step) +
                         atLine(event.location) + " needed a new program of " +
                         std::to_string(event.ops) +
                         (event.ops == 1 ? " op (" : " ops (") + event.origin +
                         ", " + inMilliseconds(event.seconds) + "): ";
  if (isPattern)
    log(LogLevel::Warning,
        sentence + reasonOf(event) + ". It is program " +
            std::to_string(programs) +
            " of this line; make values that change from step to step tensors, "
            "or pad them to a few sizes.");
  else
    log(LogLevel::Info, sentence + reasonOf(event) + ".");
}
