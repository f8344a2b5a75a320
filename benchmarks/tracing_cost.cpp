//===- tracing_cost.cpp - Loops of one op, called from Python -------------===//
//
// Loops in C++ that tracing_cost.py compares with loops in Python. They don't
// depend on this backend, and run on any device.
//
//===----------------------------------------------------------------------===//

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>

namespace {

struct Operands {
  at::Tensor a, b, weight, state;
};

using Loop = std::function<void(Operands &)>;

/// The bodies of the loops; each calls one op. In-place ops write to `state`.
const std::map<std::string, Loop> &loops() {
  static const std::map<std::string, Loop> table = {
      {"add", [](Operands &o) { at::add(o.a, o.b); }},
      {"add, chained", [](Operands &o) { o.state = at::add(o.state, o.b); }},
      {"mul by a number", [](Operands &o) { at::mul(o.a, 0.5); }},
      {"relu", [](Operands &o) { at::relu(o.a); }},
      {"mm", [](Operands &o) { at::mm(o.a, o.weight); }},
      {"addmm", [](Operands &o) { at::addmm(o.b, o.a, o.weight); }},
      {"sum to a number", [](Operands &o) { at::sum(o.a); }},
      {"view", [](Operands &o) { o.a.view({-1}); }},
      {"transpose", [](Operands &o) { o.a.t(); }},
      {"add_", [](Operands &o) { o.state.add_(o.b); }},
      {"mul_ by a number", [](Operands &o) { o.state.mul_(0.5); }},
      {"addcdiv_", [](Operands &o) { o.state.addcdiv_(o.a, o.b, 0.1); }},
  };
  return table;
}

} // namespace

/// Calls an op `count` times on `device`, with tensors of 8x8. Returns the
/// nanoseconds per call, including the release of the results; -1 if `kind` is
/// unknown.
extern "C" double tracingCost(const char *kind, const char *device,
                              int64_t count) {
  auto found = loops().find(kind);
  if (found == loops().end())
    return -1;
  at::NoGradGuard noGrad;
  auto make = [&] { return at::ones({8, 8}).to(at::Device(device)); };
  Operands operands{make(), make(), make(), make()};
  auto started = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i)
    found->second(operands);
  operands.state = at::Tensor();
  std::chrono::duration<double, std::nano> taken =
      std::chrono::steady_clock::now() - started;
  return taken.count() / double(count);
}
