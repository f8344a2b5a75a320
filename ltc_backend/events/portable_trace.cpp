//===- portable_trace.cpp - Traces for other compilers --------------------===//

#include "events/portable_trace.h"

#include <atomic>

using namespace torch_ltc;

static std::atomic<int> portableTraces{0};

void torch_ltc::enterPortableTrace() { ++portableTraces; }
void torch_ltc::leavePortableTrace() { --portableTraces; }
bool torch_ltc::isPortableTrace() { return portableTraces > 0; }
