//===- call_log.cpp - Logs of eager ops and graph cuts --------------------===//

#include "events/call_log.h"

using namespace torch_ltc;

int64_t CallLog::add(const CallLogRow &row) {
  std::lock_guard<std::mutex> lock(mutex);
  CallLogRow &sum = table[{row.op, row.location, row.reason}];
  sum.op = row.op;
  sum.location = row.location;
  sum.reason = row.reason;
  sum.calls += row.calls;
  sum.seconds += row.seconds;
  sum.bytes += row.bytes;
  sum.ops += row.ops;
  sum.syncs += row.syncs;
  return sum.calls;
}

std::vector<CallLogRow> CallLog::rows() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<CallLogRow> result;
  for (const auto &entry : table)
    result.push_back(entry.second);
  return result;
}

void CallLog::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  table.clear();
}

CallLog &torch_ltc::fallbackLog() {
  static auto *instance = new CallLog;
  return *instance;
}

CallLog &torch_ltc::syncLog() {
  static auto *instance = new CallLog;
  return *instance;
}
