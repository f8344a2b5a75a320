//===- captured_step.h - A step that runs without being traced --*- C++ -*-===//
//
// A captured step is a program with the origin of each parameter and the
// destination of each result, derived from a recorded step and the data of the
// step before it, which was recorded, too, or replayed:
//
//   origin        value of the parameter in the second recording
//   Argument i    tensor argument i of the call (a CPU tensor is uploaded)
//   Draw i        the i-th random draw, repeated by each replay
//   Result i      result i of the step before: state
//   Constant i    the value of the tensor in slot i, as in the step before
//   Upload i      the content of upload i, as in the step before
//
// A replay checks that the tensors that hold state and constants are unchanged
// since the last step. It assigns the new values to the tensors that hold state
// and to written arguments, without running autograd, functionalization or the
// tracer.
//
// If there is a program for all sizes, the arguments of replays may have other
// sizes than those of the recorded step (`addSizes`).
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CAPTURE_CAPTURED_STEP_H
#define TORCH_LTC_CAPTURE_CAPTURED_STEP_H

#include "capture/general_step.h"
#include "execution/recording.h"
#include "execution/step_queue.h"
#include "shape/strides.h"

#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace torch_ltc {

class CapturedStep {
public:
  /// A tensor, other than an argument, that the step may read and write. It has
  /// the value from the end of the second step.
  struct KnownTensor {
    at::Tensor tensor;
    std::string name;
  };

  /// `first` is the data of the step before `second`; `arguments` and
  /// `returned` are the tensors that the second step received and returned.
  /// `stepCounts` are the step counts of optimizers: float32 CPU tensors that
  /// each replay increments. `general`: the program for all sizes of the second
  /// step's program, or null. Throws c10::Error with a one-sentence reason if
  /// the step can't be replayed.
  CapturedStep(const StepData &first, const Recording &second,
               const std::vector<at::Tensor> &arguments,
               std::vector<KnownTensor> known,
               const std::vector<at::Tensor> &returned,
               std::vector<at::Tensor> stepCounts, GeneralStepPtr general);

  /// The program's dynamic scalars, with their recorded values.
  const std::vector<DynamicScalar> &scalars() const { return numbers; }
  /// Makes `replay` pass `values[expression]` as scalar `scalar`. Throws
  /// c10::Error if there is no such scalar.
  void bindScalar(size_t scalar, size_t expression);

  /// Selects the program for the sizes of the arguments. Returns false if there
  /// is none yet.
  bool selectSizes(const std::vector<at::Tensor> &arguments);
  /// Adds and selects a program for the sizes of the arguments. `symbols`:
  /// values of those symbols that no size of a parameter determines. Returns
  /// "", or why there is no such program.
  std::string addSizes(const std::vector<at::Tensor> &arguments,
                       c10::ArrayRef<std::optional<int64_t>> symbols);
  /// The varying quantities (general/varying_quantities.h) at the selected
  /// sizes; empty without a program for all sizes.
  std::vector<int64_t> quantities() const;
  /// The varying integers of the ops' arguments (general/trace_numbers.h) at
  /// the selected sizes; empty without a program for all sizes.
  std::vector<int64_t> integers() const;
  /// The data of the last step.
  StepData lastData() const;

  /// Schedules a run of the step and returns "". If the step can't be replayed,
  /// changes nothing and returns the reason. Appends a tensor to `results` for
  /// each tensor that the function returns.
  std::string replay(const std::vector<at::Tensor> &arguments,
                     const std::vector<double> &values,
                     std::vector<at::Tensor> &results);

  const std::string &programName() const { return sizes.front().program->name; }

private:
  enum class Origin { Argument, Draw, Result, Constant, Upload };
  struct Parameter {
    Origin origin;
    size_t index;
    torch::lazy::Shape shape; // in the recorded step
  };
  /// What depends on the sizes of the arguments.
  struct Sizes {
    std::vector<int64_t> arguments; // of all dims, concatenated
    ProgramPtr program;
    GraphSnapshotPtr graph;      // null without a program for all sizes
    std::vector<bool> isDonated; // by parameter
    std::vector<torch::lazy::Shape> results; // by output
    /// Empty for the recorded sizes.
    std::vector<std::vector<int64_t>> draws;
  };
  /// A tensor that holds state or a constant.
  struct Slot {
    at::Tensor tensor;
    std::string name;
    // `inner` and `expected` are only compared by address, and held so that
    // their addresses aren't reused.
    at::Tensor inner;
    WeakData expected = {};
    TensorDataPtr data;
    // Whether other tensors share the tensor's base. Then `inner` and `data`
    // belong to the base, from which all these tensors are updated.
    bool isShared = false;
    // Whether this slot holds the value of a view whose base is in another
    // slot. A step that writes the base recomputes the view's value.
    bool isView = false;
    bool isWritten = false, isRead = false;
    // Whether the slot holds the order of collectives (collective_ops.h), a
    // chain of nodes that other steps may continue.
    bool isOrder = false;
  };
  // A result of the program.
  struct Output {
    torch::lazy::Shape shape;  // in the recorded step
    std::vector<size_t> slots; // slots whose tensor receives the result
    // The data of the tensors that receive the result, and of their bases.
    std::vector<TensorDataPtr> states;
    std::vector<size_t> arguments; // tensor arguments that it overwrites
    bool isReturned = false;
    bool isState = false; // whether the next step reads it
    HostDataPtr scratch;  // memory of a result that no tensor receives
  };

  // A tensor that the function returns.
  struct Returned {
    enum { Result, Argument, Known, Again } from;
    // Index of the result, argument, slot or earlier returned tensor.
    size_t index;
    Geometry geometry;
    bool requiresGrad;
  };

  void addSlot(const at::Tensor &tensor, std::string name);
  void addOrder();
  std::optional<std::pair<Origin, size_t>>
  resultOfOrder(const Recording &second) const;
  std::optional<std::pair<Origin, size_t>>
  originOf(size_t parameter, const StepData &first, const Recording &second,
           const std::unordered_map<const HostData *, size_t> &constants) const;
  void findOrigins(const StepData &first, const Recording &second);
  void findStates(const Recording &second);
  void findWrittenArguments(const Recording &second,
                            const std::vector<at::Tensor> &tensors);
  void findReturned(const Recording &second,
                    const std::vector<at::Tensor> &argumentTensors,
                    const std::vector<at::Tensor> &returned);
  std::string checkSlots();
  std::string checkArguments(const std::vector<at::Tensor> &tensors) const;
  std::string checkCounts() const;
  std::string checkWritten(const std::vector<at::Tensor> &tensors) const;
  void addParameters(const std::vector<at::Tensor> &tensors,
                     ScheduledStep &step);
  HostDataPtr valueOfState(size_t result) const;
  void addOutputs(const std::vector<at::Tensor> &tensors, ScheduledStep &step,
                  std::vector<at::Tensor> &results);
  at::Tensor returnedTensor(const Returned &returned,
                            const std::vector<at::Tensor> &tensors,
                            const std::vector<HostDataPtr> &datas,
                            const std::vector<at::Tensor> &earlier) const;
  HostDataPtr outputData(size_t output, const ScheduledStep &step);
  void addSizesOf(std::vector<int64_t> arguments, ProgramPtr program,
                  GraphSnapshotPtr graph,
                  std::vector<torch::lazy::Shape> results);
  std::string checkSizes(const GraphSnapshot &graph,
                         const std::vector<at::Tensor> &tensors) const;

  static constexpr size_t kMaxSizes = 64;
  GeneralStepPtr general;
  std::list<Sizes> sizes; // most recently used first
  std::vector<Recording::Argument> arguments;
  std::vector<Draw> draws;
  std::vector<HostDataPtr> uploads;
  std::vector<Parameter> parameters;
  std::vector<Output> outputs;
  std::vector<Slot> slots;
  std::vector<Returned> returns;
  std::vector<LocationId> collectives; // Python line of each collective
  std::vector<DynamicScalar> numbers;
  std::vector<std::pair<size_t, size_t>> boundScalars;
  std::vector<at::Tensor> stepCounts;
  std::vector<float> expectedCounts; // step counts after the last step
  uint64_t backend;
  TraceEnvironment environment;
  // The parameters' values during a replay, held so that their memory stays
  // alive.
  std::vector<HostDataPtr> inputs;
};

} // namespace torch_ltc

#endif // TORCH_LTC_CAPTURE_CAPTURED_STEP_H
