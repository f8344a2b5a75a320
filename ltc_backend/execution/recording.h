//===- recording.h - Inputs and draws of one traced step --------*- C++ -*-===//
//
// While a recording is open on a thread, the tracer and the executor report to
// it. Two recordings of the same program show where each parameter comes from
// (captured_step.h).
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EXECUTION_RECORDING_H
#define TORCH_LTC_EXECUTION_RECORDING_H

#include "execution/cpu_reads.h"
#include "execution/step_observers.h"
#include "graph/live_tensors.h"
#include "ir/trace_environment.h"
#include "programs/program.h"
#include "shape/strides.h"

#include <functional>
#include <vector>

namespace at::functionalization {
struct FunctionalStorageImpl;
}

namespace torch_ltc {

/// Applies the pending updates of a functional wrapper and returns the tensor
/// inside it. Returns any other tensor unchanged.
at::Tensor innerOf(const at::Tensor &tensor);
/// The state of the base tensor in a functional wrapper's storage; null for any
/// other tensor.
TensorDataPtr baseOf(const at::Tensor &tensor);
/// If `tensor` is a functional wrapper that shares its storage with other
/// tensors, applies the storage's pending updates and returns it; otherwise
/// returns null.
at::functionalization::FunctionalStorageImpl *
sharedStorageOf(const at::Tensor &tensor);

/// Repeats a recorded random draw, of the traced sizes or of other ones;
/// returns a CPU tensor.
using Draw = std::function<at::Tensor(at::OptionalIntArrayRef sizes)>;
using WeakData = std::weak_ptr<HostData>;

/// Whether both refer to the same data, alive or not.
inline bool isSame(const WeakData &a, const WeakData &b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

/// The data that a step read and computed. The references are weak, because
/// data that something else holds couldn't be donated.
struct StepData {
  std::vector<WeakData> parameters, results;
  /// The contents of those parameters that were copied from small CPU tensors;
  /// undefined for other parameters.
  std::vector<at::Tensor> uploads;
};

class Recording {
public:
  /// A CPU tensor of at most this size is a constant of the captured step if it
  /// has the same content in two recordings.
  static constexpr size_t kMaxConstantBytes = 4096;
  /// The open recording of this thread, or null.
  static Recording *current();

  /// Opens a recording; `arguments` are the call's tensors, on device lazy or
  /// the CPU. Unless `numbersVary`, numbers that differ between traces stay
  /// constants of the program (tracing/varying_numbers.h).
  explicit Recording(std::vector<at::Tensor> arguments,
                     bool numbersVary = false);
  const bool numbersVary;
  /// Whether the step read the value of a CPU tensor that is an argument or a
  /// random draw, or was computed from one.
  bool readsCpuValues() const { return cpuReads.found(); }
  ~Recording();
  void close();

  /// Records that `opName` reads the value of a lazy tensor.
  void noteRead(const std::string &opName);
  /// The first such read: the op and its Python line; "" if there is none.
  const std::string &firstRead() const { return read; }

  /// Records a random draw from `distribution`, such as "bernoulli(0.5)".
  void noteDraw(const HostDataPtr &data, Draw draw, std::string distribution);
  /// Records that `data` was copied from `source`, a CPU tensor.
  void noteUpload(const HostDataPtr &data, const at::Tensor &source);
  /// Records the end of the chain of collectives that precede the step; later
  /// calls are ignored.
  void noteOrder(const HostDataPtr &data);
  /// Records that a collective of the step writes `tensor`, which may belong to
  /// a C++ object (for example, a bucket of DistributedDataParallel).
  void noteReceiver(const at::Tensor &tensor);
  /// The tensors that collectives of the step write, without those that have
  /// been destroyed.
  std::vector<at::Tensor> receivers() const;
  /// Records that Python reads the sizes of a lazy tensor. Returns the index of
  /// the tensor in `sizeSources`, which the run completes.
  size_t noteSizesRead(const at::Tensor &tensor);
  /// Records a run of a program; only the last run is kept.
  void noteRun(const ObservedStep &observed);

  struct Argument {
    WeakData data;                   // of a lazy tensor
    c10::TensorImpl *impl = nullptr; // of a CPU tensor
    c10::ScalarType dtype;
    std::vector<int64_t> sizes;
    Strides strides;
    bool isLazy = false;
    /// Index of the first argument that has the same data.
    size_t sameAs = 0;
    bool isWritten = false; // set by CapturedStep
  };
  struct Upload {
    WeakData data;
    c10::TensorImpl *source;
    at::Tensor content; // undefined if it is large
  };
  /// The origin of a tensor whose sizes Python reads; empty if the tensor is
  /// neither an argument nor a value of the program.
  struct SizeSource {
    std::optional<size_t> argument;
    std::optional<ResultRef> value;
  };
  const TraceEnvironment environment = TraceEnvironment::current();
  std::vector<Argument> arguments;
  std::vector<std::pair<WeakData, Draw>> draws;
  std::vector<std::string> distributions; // of the draws
  std::vector<Upload> uploads;
  WeakData order;
  int numRuns = 0;
  std::vector<SizeSource> sizeSources;
  // State of the last run:
  ProgramPtr program;
  GraphSnapshotPtr graph;
  StepData data;
  std::vector<torch::lazy::Shape> parameterShapes, resultShapes;
  std::vector<std::weak_ptr<TensorData>> roots;
  std::vector<uint32_t> resultOfRoot;
  std::vector<DynamicScalar> scalars;

private:
  /// The arguments, held while the recording is open so that no address is
  /// reused.
  std::vector<at::Tensor> held;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> weakReceivers;
  /// The pending value or the data of each size source that isn't an argument.
  struct SizedValue {
    std::weak_ptr<torch::lazy::Node> node;
    uint32_t result = 0;
    WeakData data;
  };
  std::vector<SizedValue> sizedValues;
  void findSizeSources(const Graph &graph);
  CpuReads cpuReads;
  std::string read;
};

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_RECORDING_H
