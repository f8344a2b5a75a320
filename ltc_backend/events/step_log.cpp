//===- step_log.cpp - Log of compilations and executions ------------------===//

#include "events/step_log.h"

#include "config/config.h"
#include "config/log.h"

#include <deque>
#include <fstream>
#include <mutex>
#include <utility>

using namespace torch_ltc;

namespace {

constexpr size_t kMaxEvents = 1024;

struct Logs {
  std::mutex mutex;
  std::deque<CompileEvent> compiles;
  std::deque<StepEvent> steps;
  uint64_t firstStep = 0; // number of steps.front()
};

Logs &logs() {
  static auto *instance = new Logs;
  return *instance;
}

/// Appends the event as a line with a JSON object, for tools that follow a run.
/// The caller must hold no lock, because logging takes the GIL.
void appendLine(const std::string &file, const StepEvent &event) {
  static std::mutex fileMutex;
  static bool wasSaid = false;
  bool isFirstFailure = false;
  {
    std::lock_guard<std::mutex> lock(fileMutex);
    std::ofstream stream(file, std::ios::app);
    stream.precision(9);
    stream << "{\"step\": " << event.step << ", \"program\": \""
           << event.program << "\", \"origin\": \"" << event.origin
           << "\", \"trigger\": \"" << event.trigger
           << "\", \"ops\": " << event.ops << ", \"time\": " << std::fixed
           << event.time << ", \"schedule_seconds\": " << event.scheduleSeconds
           << ", \"execute_seconds\": " << event.executeSeconds
           << ", \"donated\": " << event.donated
           << ", \"live_tensors\": " << event.liveTensors
           << ", \"allocated_bytes\": " << event.allocatedBytes << "}\n";
    stream.close();
    isFirstFailure = !stream && !std::exchange(wasSaid, true);
  }
  if (isFirstFailure)
    log(LogLevel::Warning,
        "Steps can't be written to '" + file + "' (option step_log_file).");
}

} // namespace

static thread_local std::vector<std::string> varyingNumbers;

void torch_ltc::noteVaryingNumber(std::string text) {
  varyingNumbers.push_back(std::move(text));
}

std::vector<std::string> torch_ltc::takeVaryingNumbers() {
  return std::exchange(varyingNumbers, {});
}

std::string torch_ltc::reasonOf(const CompileEvent &event) {
  return event.difference ? event.difference() + event.reason : event.reason;
}

void torch_ltc::addCompileEvent(CompileEvent event) {
  std::lock_guard<std::mutex> lock(logs().mutex);
  logs().compiles.push_back(std::move(event));
  if (logs().compiles.size() > kMaxEvents)
    logs().compiles.pop_front();
}

CompileEvent torch_ltc::compileEventOf(const std::string &program) {
  std::lock_guard<std::mutex> lock(logs().mutex);
  for (auto event = logs().compiles.rbegin(); event != logs().compiles.rend();
       ++event)
    if (event->program == program)
      return *event;
  return {};
}

void torch_ltc::setDumpDirectory(const std::string &program,
                                 const std::string &path) {
  std::lock_guard<std::mutex> lock(logs().mutex);
  for (CompileEvent &event : logs().compiles)
    if (event.program == program)
      event.dumpDirectory = path;
}

void torch_ltc::setUndonated(
    const std::string &program,
    std::vector<std::pair<std::string, std::string>> undonated) {
  std::lock_guard<std::mutex> lock(logs().mutex);
  for (auto event = logs().compiles.rbegin(); event != logs().compiles.rend();
       ++event)
    if (event->program == program) {
      event->undonated = std::move(undonated);
      return;
    }
}

uint64_t torch_ltc::addStepEvent(StepEvent event) {
  std::lock_guard<std::mutex> lock(logs().mutex);
  logs().steps.push_back(std::move(event));
  if (logs().steps.size() > kMaxEvents) {
    logs().steps.pop_front();
    ++logs().firstStep;
  }
  return logs().firstStep + logs().steps.size() - 1;
}

void torch_ltc::finishStepEvent(uint64_t number, double executeSeconds) {
  std::string file = config().step_log_file.get();
  StepEvent finished;
  {
    std::lock_guard<std::mutex> lock(logs().mutex);
    if (number < logs().firstStep ||
        number - logs().firstStep >= logs().steps.size())
      return;
    StepEvent &event = logs().steps[number - logs().firstStep];
    event.executeSeconds = executeSeconds;
    if (!file.empty())
      finished = event;
  }
  if (!file.empty())
    appendLine(file, finished);
}

std::vector<CompileEvent> torch_ltc::compileEvents() {
  std::lock_guard<std::mutex> lock(logs().mutex);
  return {logs().compiles.begin(), logs().compiles.end()};
}

std::vector<StepEvent> torch_ltc::stepEvents() {
  std::lock_guard<std::mutex> lock(logs().mutex);
  return {logs().steps.begin(), logs().steps.end()};
}

void torch_ltc::clearStepLogs() {
  std::lock_guard<std::mutex> lock(logs().mutex);
  logs().compiles.clear();
  // Numbers aren't reused: those of steps that are running must not denote
  // events of later steps.
  logs().firstStep += logs().steps.size();
  logs().steps.clear();
}
