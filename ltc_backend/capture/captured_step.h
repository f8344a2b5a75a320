//===- captured_step.h - A step that runs without being traced --*- C++ -*-===//
//
// A captured step is a program with the origin of each parameter and the
// destination of each result, derived from the recordings of two consecutive
// steps:
//
//   origin        value of the parameter in the second recording
//   Argument i    tensor argument i of the call (a CPU tensor is uploaded)
//   Draw i        the i-th random draw, repeated by each replay
//   Result i      result i of the first recording: state
//   Constant i    the value of the tensor in slot i, as in the first recording
//
// A replay checks that the tensors that hold state and constants are unchanged
// since the last step. It assigns the new values to the tensors that hold state
// and to written arguments, without running autograd, functionalization or the
// tracer.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CAPTURE_CAPTURED_STEP_H
#define TORCH_LTC_CAPTURE_CAPTURED_STEP_H

#include "execution/recording.h"
#include "execution/step_queue.h"
#include "shape/strides.h"

#include <optional>
#include <string>
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

  /// `first` and `second` are the recordings of consecutive steps; `arguments`
  /// and `returned` are the tensors that the second step received and returned.
  /// `stepCounts` are the step counts of optimizers: float32 CPU tensors that
  /// each replay increments. Throws c10::Error with a one-sentence reason if
  /// the step can't be replayed.
  CapturedStep(const Recording &first, const Recording &second,
               const std::vector<at::Tensor> &arguments,
               std::vector<KnownTensor> known,
               const std::vector<at::Tensor> &returned,
               std::vector<at::Tensor> stepCounts);

  /// The program's dynamic scalars, with their recorded values.
  const std::vector<DynamicScalar> &scalars() const { return numbers; }
  /// Makes `replay` pass `values[expression]` as scalar `scalar`. Throws
  /// c10::Error if there is no such scalar.
  void bindScalar(size_t scalar, size_t expression);

  /// Schedules a run of the step and returns "". If the step can't be replayed,
  /// changes nothing and returns the reason. Appends a tensor to `results` for
  /// each tensor that the function returns.
  std::string replay(const std::vector<at::Tensor> &arguments,
                     const std::vector<double> &values,
                     std::vector<at::Tensor> &results);

  const std::string &programName() const { return program->name; }

private:
  enum class Origin { Argument, Draw, Result, Constant };
  struct Parameter {
    Origin origin;
    size_t index;
    bool isDonated = false;
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
    torch::lazy::Shape shape;
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
  std::optional<Parameter> resultOfOrder(const Recording &second) const;
  void findOrigins(const Recording &first, const Recording &second);
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
  HostDataPtr outputData(Output &output, const OutputPlan &plan,
                         const ScheduledStep &step);

  ProgramPtr program;
  std::vector<Recording::Argument> arguments;
  std::vector<Draw> draws;
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
