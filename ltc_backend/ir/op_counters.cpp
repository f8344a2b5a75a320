//===- op_counters.cpp - torch._lazy.metrics' counters of ops -------------===//

#include "ir/op_counters.h"

#include <torch/csrc/lazy/core/metrics.h>

#include <atomic>
#include <cctype>
#include <memory>
#include <mutex>
#include <unordered_map>

using namespace torch_ltc;
using LazyCounter = torch::lazy::Counter;

namespace {

std::string baseName(const std::string &name) {
  size_t begin = name.find("::") + 2;
  return name.substr(begin, name.find('.') - begin);
}

/// Returns the class name that torchgen generates for a node:
/// "native_batch_norm" -> "NativeBatchNorm", "add.Tensor" -> "AddTensor".
std::string nodeClass(const std::string &name) {
  std::string result;
  bool isFirst = true;
  for (char c : name.substr(name.find("::") + 2)) {
    if (c == '_' || c == '.') {
      isFirst = true;
      continue;
    }
    result += isFirst ? char(std::toupper(static_cast<unsigned char>(c))) : c;
    isFirst = false;
  }
  return result;
}

bool takesSymbolicSizes(const c10::FunctionSchema &schema) {
  for (const c10::Argument &argument : schema.arguments())
    if (argument.real_type()->str().find("SymInt") != std::string::npos)
      return true;
  return false;
}

/// Counters of one op; never destroyed.
struct OpCounters {
  explicit OpCounters(const OpRecord &record)
      : traced("lazy::" + baseName(record.name)),
        reused("IrNodeReused_torch::lazy::" + nodeClass(record.name)) {
    if (takesSymbolicSizes(record.handle->schema()))
      symbolic = std::make_unique<LazyCounter>(
          "lazy::" + baseName(record.name) + "_symint");
  }

  LazyCounter traced, reused;
  /// Null if the op has no symbolic sizes. torchgen's kernels for symbolic
  /// sizes count under a separate name.
  std::unique_ptr<LazyCounter> symbolic;
};

using CountersPlace = std::atomic<OpCounters *>;

/// Returns where the pointer to the record's counters is stored, or null if the
/// record isn't in the op table.
CountersPlace *placeOf(const OpRecord &record) {
  const std::vector<OpRecord> &records = opRecords();
  static CountersPlace *places = new CountersPlace[records.size()]();
  bool isOfTable =
      &record >= records.data() && &record < records.data() + records.size();
  return isOfTable ? places + (&record - records.data()) : nullptr;
}

} // namespace

void torch_ltc::countTracedOp(const OpRecord &record, bool isReused) {
  CountersPlace *place = placeOf(record);
  if (!place)
    return;
  OpCounters *counters = place->load(std::memory_order_acquire);
  if (!counters) {
    auto made = std::make_unique<OpCounters>(record);
    if (place->compare_exchange_strong(counters, made.get()))
      counters = made.release();
  }
  counters->traced.AddValue(1);
  if (isReused)
    counters->reused.AddValue(1);
  if (counters->symbolic)
    counters->symbolic->AddValue(1);
}

void torch_ltc::countEagerOp(const std::string &name) {
  static std::mutex mutex;
  static auto *counters =
      new std::unordered_map<std::string, std::unique_ptr<LazyCounter>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<LazyCounter> &counter = (*counters)[name];
  if (!counter)
    counter = std::make_unique<LazyCounter>(name);
  counter->AddValue(1);
}
