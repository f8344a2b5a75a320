//===- trace_environment.cpp - State that tracing reads -------------------===//

#include "ir/trace_environment.h"

#include "ir/hash.h"
#include "memory/lazy_device.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

using namespace torch_ltc;

TraceEnvironment TraceEnvironment::current() {
  return {
#define TRACE_STATE(Type, Name, Words, Read) .Name = Read,
#include "ir/trace_environment.def"
  };
}

uint64_t TraceEnvironment::hash() const {
  HashState state(7);
#define TRACE_STATE(Type, Name, Words, Read) state.add(uint64_t(Name));
#include "ir/trace_environment.def"
  return state.finish().low;
}

std::string
TraceEnvironment::differenceFrom(const TraceEnvironment &other) const {
#define TRACE_STATE(Type, Name, Words, Read)                                   \
  if (Name != other.Name)                                                      \
    return Words;
#include "ir/trace_environment.def"
  return "";
}
