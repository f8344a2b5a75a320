//===- expected_trace.h - Traces that will probably repeat ------*- C++ -*-===//
//
// The tracing thread's part of a head start (programs/head_start.h). If a
// thread waited for a step and the step's program is interpreted, a later trace
// is expected to have the same skeleton: the same ops in the same order, whose
// operands are results of the same ops or data. Sizes and other arguments may
// differ, because many loops never repeat a trace exactly.
//
// The first ops of a trace determine which skeleton is expected. Its graph says
// when each op may run and how long each value is kept; arguments and shapes
// are those of the new trace. Each op that is as expected may run on the worker
// thread; the first op that differs ends the head start. At the end of the
// step, the head start is only used if the new graph has the same structure.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EXECUTION_EXPECTED_TRACE_H
#define TORCH_LTC_EXECUTION_EXPECTED_TRACE_H

#include "graph/graph.h"
#include "programs/head_start.h"

#include <memory>
#include <unordered_map>

namespace torch_ltc {

class ExpectedTraces {
public:
  static ExpectedTraces &ofThisThread();

  /// Adds an op to the trace, and numbers it.
  void add(const torch::lazy::NodePtr &op);
  /// Ends the trace. Returns the head start if all ops were as expected.
  HeadStartPtr endTrace();
  /// Expects the last trace, whose step runs `program` with `numThreads`
  /// threads, to be repeated. `graph`: of the step.
  void expectAgain(const Graph &graph, const ProgramPtr &program,
                   int numThreads);

private:
  static constexpr uint32_t kData = UINT32_MAX;
  /// A loop whose program has been compiled needs no head starts.
  static constexpr int kMaxTracesInVain = 32;
  /// Where an operand comes from.
  struct Source {
    uint32_t op; // its place in the trace, or kData
    uint32_t result;
    bool operator==(const Source &) const = default;
  };
  struct TracedOp {
    const OpRecord *record;
    uint32_t numScalars;
    c10::SmallVector<Source, 3> operands;
    bool operator==(const TracedOp &) const = default;
  };
  struct Pattern;
  using PatternPtr = std::shared_ptr<Pattern>;

  TracedOp describe(const OpNode &op);
  /// Begins a head start if the first ops are those of a pattern.
  void begin();
  /// Compares the op at `place` of the trace with the pattern's.
  void follow(size_t place, const OpNode &op);
  /// Sets the node at `position` of the head start's graph to `op`.
  void setNode(uint32_t position, const OpNode &op);
  /// Makes the worker run the ops before place `end`.
  void request(size_t end);
  void abandon();
  /// Returns null if the graph has ops of an earlier trace.
  PatternPtr patternOfLastTrace(const Graph &graphOfStep,
                                const InterpretedProgram &program) const;

  std::vector<TracedOp> ops; // of the present trace so far
  bool isClosed = true; // whether all operands are data or results of `ops`
  uint64_t firstNumber = 0, nextNumber = 0;
  uint64_t hash = 0, hashBefore = 0; // of this trace so far; of the last one
  uint64_t key = 0; // of the trace's pattern, 0 until its first ops are known
  /// The first ops, which are set in the graph of the pattern that they
  /// determine. Released by then, and before buffers are donated.
  std::vector<torch::lazy::NodePtr> firstOps;

  PatternPtr current;
  HeadStartPtr headStart;
  std::shared_ptr<GraphSnapshot> graph; // of the head start's program
  size_t numRequested = 0;

  /// Number of traces since the last step that could have had a head start.
  int numTracesInVain = 0;
  std::vector<TracedOp> lastOps;
  uint64_t lastFirstNumber = 0, lastKey = 0;
  /// By the first ops and the skeleton of the trace before: steps of one loop
  /// may begin with the same ops (gradient accumulation).
  std::unordered_map<uint64_t, PatternPtr> patterns;
};

/// Whether the head start runs `program` with the parameters and the ops of
/// `graph`.
bool isRunOf(const HeadStart &headStart, const Program &program,
             const Graph &graph);

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_EXPECTED_TRACE_H
