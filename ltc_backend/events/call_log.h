//===- call_log.h - Logs of eager ops and graph cuts ------------*- C++ -*-===//
//
// Two tables with a row for each op, Python line and reason: the fallback log
// and the sync log. Thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EVENTS_CALL_LOG_H
#define TORCH_LTC_EVENTS_CALL_LOG_H

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace torch_ltc {

struct CallLogRow {
  std::string op;       // "aten::sort"
  std::string location; // "train.py:31", "" if unknown
  std::string reason;
  int64_t calls = 0;
  double seconds = 0;
  int64_t bytes = 0; // moved to and from the CPU kernel
  int64_t ops = 0;   // traced ops that were cut off
  int64_t syncs = 0; // executions that the call had to wait for
};

class CallLog {
public:
  /// Adds the counts and the time of `row` to the row of the same op, line and
  /// reason. Returns the number of calls in that row.
  int64_t add(const CallLogRow &row);
  std::vector<CallLogRow> rows() const;
  void clear();

private:
  mutable std::mutex mutex;
  std::map<std::tuple<std::string, std::string, std::string>, CallLogRow> table;
};

CallLog &fallbackLog();
CallLog &syncLog();

} // namespace torch_ltc

#endif // TORCH_LTC_EVENTS_CALL_LOG_H
