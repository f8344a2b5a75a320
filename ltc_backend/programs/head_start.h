//===- head_start.h - Ops that run before their step is traced --*- C++ -*-===//
//
// A step that a thread waits for runs after it has been traced: first, one
// processor traces; then, another one computes. But the trace usually repeats
// an earlier trace. While it does, the ops traced so far can run on the idle
// worker thread. If the whole trace is as expected, the program's run continues
// after these ops; otherwise their values are dropped. Nothing that runs early
// overwrites a parameter, so a wrong expectation only costs the worker's time.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_PROGRAMS_HEAD_START_H
#define TORCH_LTC_PROGRAMS_HEAD_START_H

#include "programs/interpreted_program.h"

namespace torch_ltc {

/// The tracing thread sets parameters and scalars before it requests the ops
/// that read them; the rest belongs to the thread that runs steps.
struct HeadStart {
  struct Parameter {
    BufferPtr buffer; // null until an op reads it
    CompletionPtr producer;
  };
  std::shared_ptr<InterpretedProgram> program;
  std::vector<Parameter> parameters;
  std::vector<DynamicScalar> scalars;

  /// For each node of the program's graph, the number of the traced op
  /// (`OpNode::number`); 0 for nodes that weren't traced.
  std::vector<uint64_t> tracedOps;

  RunValues values;
  /// For each parameter that was read, the number that identifies its contents
  /// (`Buffer::contents`); 0 for the others.
  std::vector<uint64_t> contents;
  /// Buffers of the program's results, null for results that use a parameter's
  /// memory; and the addresses of the buffers' memory.
  std::vector<BufferPtr> outputs;
  ResultAddresses addresses;
  int64_t numOps = 0; // ops that have run
  /// Processor time of these ops.
  std::atomic<double> seconds{0};
  /// Whether an op has failed. The step then runs from its first op, and raises
  /// the error.
  std::atomic<bool> hasFailed{false};
};

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_HEAD_START_H
