//===- program.h - The executable form of a step ----------------*- C++ -*-===//

#ifndef TORCH_LTC_PROGRAMS_PROGRAM_H
#define TORCH_LTC_PROGRAMS_PROGRAM_H

#include "events/error_kind.h"
#include "graph/graph.h"

#include "torch_ltc-c/runtime.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <time.h>
#include <vector>

namespace torch_ltc {

/// Tensor options of a value's memory while a program runs.
inline at::TensorOptions hostOptions(const torch::lazy::Shape &shape) {
  return at::TensorOptions().dtype(shape.scalar_type()).device(c10::kCPU);
}

/// A tensor on a value's memory. The memory must outlive the tensor.
inline at::Tensor tensorAt(void *memory, const torch::lazy::Shape &shape) {
  return at::from_blob(memory, shape.sizes(), hostOptions(shape));
}

enum class OutputPlace { Fresh, Donated, Forwarded };

/// Where a result's memory comes from.
struct OutputPlan {
  OutputPlace place = OutputPlace::Fresh;
  size_t parameter = 0; // the parameter whose buffer is used, unless Fresh
  /// The parameter that the result updates, if any.
  std::optional<size_t> updatedParameter;
};

struct ProgramCommand {
  std::string name;
  std::string location;    // "train.py:31"
  std::string modulePath;  // "body.0+body.1"
  std::string resultTypes; // "f32[4,5]"
  int64_t calls = 0;
  double seconds = 0;
};

struct HeadStart;

struct RunConditions {
  int threads = 1;
  /// CPU-time clock of the thread that continues while the program runs.
  std::optional<clockid_t> caller;
  /// Identifiers of the parameters' contents (Buffer::contents), or empty.
  c10::ArrayRef<uint64_t> parameterContents = {};
  /// Lines of the graph's nodes, as traced for this run; empty if unknown.
  c10::ArrayRef<LocationId> locations = {};
  /// The ops of an interpreted program that have already run
  /// (programs/head_start.h); null if none have.
  HeadStart *headStart = nullptr;
  /// The buffers of the outputs, for a program that provides their memory
  /// itself (`providesMemory`).
  c10::ArrayRef<BufferPtr> outputBuffers = {};
};

class Program {
public:
  virtual ~Program() = default;

  /// Runs the program on the calling thread, with one pointer for each
  /// parameter and each output. Throws std::runtime_error with a one-sentence
  /// message.
  virtual void run(c10::ArrayRef<void *> parameters,
                   c10::ArrayRef<DynamicScalar> scalars,
                   c10::ArrayRef<void *> outputs,
                   const RunConditions &conditions) = 0;
  virtual std::vector<ProgramCommand> commands() const { return {}; }
  virtual int64_t arenaBytes() const { return 0; }
  /// Whether a thread that waits for a result may run the program: nothing in
  /// the program may depend on the thread. False if a run may wait for other
  /// ranks: Ctrl-C would have to wait, too.
  virtual bool mayRunInCaller() const { return false; }
  /// A graph that computes the same results, null if there is none.
  virtual const GraphSnapshot *evaluableGraph() const { return nullptr; }
  /// Whether pointers to outputs may be null: the program materializes the
  /// buffers when it has results to store in them.
  virtual bool providesMemory() const { return false; }

  std::string name; // the hash in hexadecimal
  std::vector<OutputPlan> outputs;
  size_t numOps = 0;
  size_t numDonated = 0;
  /// Number of collectives that a run begins.
  size_t numCollectives = 0;
  /// Whether a run may wait for other processes.
  bool waitsForRanks = false;
  /// Duration of the last run that succeeded, in seconds; negative if there was
  /// none.
  std::atomic<double> lastSeconds{-1};
  /// Whether the first run will presumably be short.
  bool isSmall = false;
  /// Whether the thread that scheduled the last run waited for one of the run's
  /// results before it traced the next step.
  std::atomic<bool> isReadAtOnce{false};
  /// Whether the program runs a bound executable, made from a general one.
  bool isBound = false;

  /// Whether the program runs in place of one that isn't compiled yet.
  virtual bool isPlaceholder() const { return false; }
  /// Called when a step of the program is scheduled again.
  virtual void noteReuse() {}
  /// Starts to compile the program, unless a compilation was started already.
  /// Only for placeholders.
  virtual void requestCompilation() {}
};
using ProgramPtr = std::shared_ptr<Program>;

/// Sets the members of `program` that describe the collectives of `graph`.
void noteCollectives(const GraphSnapshot &graph, Program &program);

/// A compiled program in the runtime.
class CompiledProgram final : public Program {
public:
  /// Loads `bytes`; throws std::runtime_error if they don't match `graph`.
  CompiledProgram(GraphSnapshotPtr graph, const char *bytes, size_t size);
  /// Takes over `executable`, which is bound to the graph's sizes.
  CompiledProgram(GraphSnapshotPtr graph, LtcExecutable executable);
  ~CompiledProgram() override;
  void run(c10::ArrayRef<void *> parameters,
           c10::ArrayRef<DynamicScalar> scalars, c10::ArrayRef<void *> outputs,
           const RunConditions &conditions) override;
  std::vector<ProgramCommand> commands() const override;
  int64_t arenaBytes() const override;
  bool mayRunInCaller() const override { return !waitsForRanks; }
  const GraphSnapshot *evaluableGraph() const override { return graph.get(); }
  size_t numKernels() const;
  size_t numCommands() const;

private:
  void checkSignature() const;
  LtcExecutable executable;
  /// The graph of this process's first trace of the program, with its Python
  /// lines: an executable from the disk cache has the lines of the process that
  /// compiled it.
  GraphSnapshotPtr graph;
  mutable std::mutex profileMutex;
  int64_t profiledCalls = 0;
  std::vector<int64_t> nanoseconds;
};

/// Called with the results of each node in turn; returns false to end the
/// evaluation.
using NodeVisitor = std::function<bool(size_t position,
                                       const std::vector<at::Tensor> &results)>;

/// Evaluates the graph op by op with torch's CPU kernels. Returns the values by
/// node and result; nodes that the evaluation doesn't reach have none.
std::vector<std::vector<at::Tensor>>
interpretGraph(const GraphSnapshot &graph, c10::ArrayRef<void *> parameters,
               c10::ArrayRef<DynamicScalar> scalars,
               const NodeVisitor &visit = {});

/// Runs one op on the values of the nodes before it. An error names `location`
/// if it is given, otherwise the line of the graph's first trace.
std::vector<at::Tensor>
interpretNode(const GraphSnapshot &graph, size_t position,
              const std::vector<std::vector<at::Tensor>> &values,
              c10::ArrayRef<DynamicScalar> scalars,
              std::optional<LocationId> location = std::nullopt);

/// A program whose results are checked after each run. The program must not
/// donate.
class ProgramWithChecks : public Program {
public:
  ProgramWithChecks(ProgramPtr inner, GraphSnapshotPtr graph);
  std::vector<ProgramCommand> commands() const override {
    return inner->commands();
  }
  int64_t arenaBytes() const override { return inner->arenaBytes(); }
  const GraphSnapshot *evaluableGraph() const override {
    return inner->evaluableGraph();
  }

protected:
  ProgramPtr inner;
  GraphSnapshotPtr graph;
};

/// Checks the results of each run for NaN and Inf, and names the first op that
/// produced one (option `detect_nan`).
class CheckedProgram final : public ProgramWithChecks {
public:
  using ProgramWithChecks::ProgramWithChecks;
  void run(c10::ArrayRef<void *> parameters,
           c10::ArrayRef<DynamicScalar> scalars, c10::ArrayRef<void *> outputs,
           const RunConditions &conditions) override;
};

/// Compares the results of each run with an evaluation op by op, and names the
/// first op that differs (option `lockstep`).
class LockstepProgram final : public ProgramWithChecks {
public:
  /// Compiles a graph without using caches.
  using Compile = std::function<ProgramPtr(const GraphSnapshot &)>;

  LockstepProgram(ProgramPtr inner, GraphSnapshotPtr graph, Compile compile);
  void run(c10::ArrayRef<void *> parameters,
           c10::ArrayRef<DynamicScalar> scalars, c10::ArrayRef<void *> outputs,
           const RunConditions &conditions) override;

private:
  std::string findOp(c10::ArrayRef<void *> parameters,
                     c10::ArrayRef<DynamicScalar> scalars,
                     const RunConditions &conditions);

  Compile compile;
};

/// Throws std::runtime_error with the status's message, if there is one.
void throwIfFailed(LtcStatus status);

/// A run that ended with an error.
struct RunError : std::runtime_error {
  RunError(const std::string &message, bool parametersIntact,
           ErrorKind kind = ErrorKind::Runtime)
      : std::runtime_error(message), parametersIntact(parametersIntact),
        kind(kind) {}
  /// Whether no donated parameter has been overwritten yet.
  bool parametersIntact;
  ErrorKind kind;
  bool isOfCollective = false; // whether a collective raised the error
};

LtcDType toLtcDType(c10::ScalarType type);

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_PROGRAM_H
