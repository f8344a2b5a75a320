//===- trace_environment.h - State that tracing reads -----------*- C++ -*-===//
//
// What is remembered from one trace to the next must know the part of this
// state that it was made under:
//
//   program in memory or on disk   the results' types of each of its ops (their
//                                  hashes, ir/node.h): the compiler reads
//                                  nothing else
//   interpreted program            the same: programs/interpreted_program.cpp
//   answer of a Meta kernel        all of it (a Python kernel may read any)
//   op of a repeated trace         the default dtype; all else decides which op
//                                  it is
//   captured step                  all of it, as it was when the step began
//
// An op that runs eagerly reads the state as it is then.
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

  /// As the calling thread sees it.
  static TraceEnvironment current();
  uint64_t hash() const;
  /// The first state that isn't as in `other`, in words; "" if all is.
  std::string differenceFrom(const TraceEnvironment &other) const;
};

} // namespace torch_ltc

#endif // TORCH_LTC_IR_TRACE_ENVIRONMENT_H
