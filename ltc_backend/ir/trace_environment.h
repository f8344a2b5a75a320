//===- trace_environment.h - State that tracing reads -----------*- C++ -*-===//
//
// Data that is cached across traces must record the part of this state under
// which it was created:
//
//   program in memory or on disk   the types of its ops' results (in the ops'
//                                  hashes, ir/node.h): the compiler reads
//                                  nothing else
//   interpreted program            the same: programs/interpreted_program.cpp
//   results of a Meta kernel       all of it (a Python kernel may read any of
//                                  it)
//   op of a repeated trace         the default dtype; the rest only affects
//                                  which op is called
//   captured step                  all of it, as it was when the step began
//
// An op that runs eagerly reads the current state.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_IR_TRACE_ENVIRONMENT_H
#define TORCH_LTC_IR_TRACE_ENVIRONMENT_H

#include <ATen/Context.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

namespace torch_ltc {

struct TraceEnvironment {
#define TRACE_STATE(Type, Name, Words, Read) Type Name;
#include "ir/trace_environment.def"

  /// The state of the calling thread.
  static TraceEnvironment current();
  uint64_t hash() const;
  /// Describes the first state that differs from `other`; "" if all are equal.
  std::string differenceFrom(const TraceEnvironment &other) const;
};

} // namespace torch_ltc

#endif // TORCH_LTC_IR_TRACE_ENVIRONMENT_H
