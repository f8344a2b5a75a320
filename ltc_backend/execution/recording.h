//===- recording.h - What one traced step read and drew ---------*- C++ -*-===//
//
// While a recording is open on a thread, the tracer and the executor report to
// it. Two recordings of the same program tell where each parameter comes from
// (captured_step.h).
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EXECUTION_RECORDING_H
#define TORCH_LTC_EXECUTION_RECORDING_H

#include "execution/cpu_reads.h"
#include "graph/live_tensors.h"
#include "ir/trace_environment.h"
#include "programs/program.h"
#include "shape/strides.h"

#include <functional>
#include <vector>

namespace torch_ltc {

/// A tensor below its functional wrapper, with all its updates.
at::Tensor innerOf(const at::Tensor &tensor);
/// The value below a tensor's storage where it isn't the tensor's own.
TensorDataPtr baseOf(const at::Tensor &tensor);

/// Draws random numbers again, as the recorded op did: a CPU tensor.
using Draw = std::function<at::Tensor()>;
using WeakData = std::weak_ptr<HostData>;

/// Whether both are of the same data, alive or not.
inline bool isSame(const WeakData &a, const WeakData &b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

class Recording {
public:
  /// The open one of this thread, null if there is none.
  static Recording *current();

  /// Opens; `arguments` are the call's tensors, on device lazy or the CPU.
  explicit Recording(std::vector<at::Tensor> arguments);
  /// Whether the step read the value of a CPU tensor that is an argument, came
  /// from one, or was drawn.
  bool readsCpuValues() const { return cpuReads.found(); }
  ~Recording();
  void close();

  /// `distribution`: "bernoulli(0.5)".
  void noteDraw(const HostDataPtr &data, Draw draw, std::string distribution);
  void noteUpload(const HostDataPtr &data, const at::Tensor &source);
  void noteRun(const ProgramPtr &program,
               c10::ArrayRef<HostDataPtr> programParameters,
               c10::ArrayRef<HostDataPtr> programResults,
               c10::ArrayRef<TensorDataPtr> rootTensors,
               c10::ArrayRef<uint32_t> resultOfRootTensor,
               c10::ArrayRef<DynamicScalar> programScalars);

  // Weak: what a recording held couldn't be donated.
  struct Argument {
    WeakData data;                   // of a lazy tensor
    c10::TensorImpl *impl = nullptr; // of a CPU tensor
    c10::ScalarType dtype;
    std::vector<int64_t> sizes;
    Strides strides;
    bool isLazy = false;
    /// The first argument that has the same data.
    size_t sameAs = 0;
    bool isWritten = false; // found by CapturedStep
  };
  struct Upload {
    WeakData data;
    c10::TensorImpl *source;
  };
  const TraceEnvironment environment = TraceEnvironment::current();
  std::vector<Argument> arguments;
  std::vector<std::pair<WeakData, Draw>> draws;
  std::vector<std::string> distributions; // of the draws
  std::vector<Upload> uploads;
  int numRuns = 0;
  // Of the last run:
  ProgramPtr program;
  std::vector<WeakData> parameters, results;
  std::vector<torch::lazy::Shape> parameterShapes, resultShapes;
  std::vector<std::weak_ptr<TensorData>> roots;
  std::vector<uint32_t> resultOfRoot;
  std::vector<DynamicScalar> scalars;

private:
  /// Kept open, so that no address is used twice.
  std::vector<at::Tensor> held;
  CpuReads cpuReads;
};

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_RECORDING_H
