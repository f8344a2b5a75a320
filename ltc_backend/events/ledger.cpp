//===- ledger.cpp - Logs of eager ops and graph cuts ----------------------===//

#include "events/ledger.h"

using namespace torch_ltc;

int64_t Ledger::add(const LedgerRow &row) {
  std::lock_guard<std::mutex> lock(mutex);
  LedgerRow &sum = table[{row.op, row.location, row.reason}];
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

std::vector<LedgerRow> Ledger::rows() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<LedgerRow> result;
  for (const auto &entry : table)
    result.push_back(entry.second);
  return result;
}

void Ledger::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  table.clear();
}

Ledger &torch_ltc::fallbackLedger() {
  static auto *ledger = new Ledger;
  return *ledger;
}

Ledger &torch_ltc::syncLog() {
  static auto *ledger = new Ledger;
  return *ledger;
}
