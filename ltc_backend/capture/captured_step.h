//===- captured_step.h - A step that runs without being traced --*- C++ -*-===//
//
// A program with the origin of each of its parameters and the destination of
// each of its results, derived from two recordings of consecutive steps:
//
//   parameter     is, in the second recording
//   Argument i    the value of the call's tensor i (a CPU tensor: uploaded)
//   Draw i        the i-th random numbers, drawn again
//   Result i      result i of the first recording: state
//   Constant i    the value of known tensor i, as in the first recording
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
  /// Tensors that the step may read and write besides its arguments, as they
  /// are after the second recording.
  struct KnownTensor {
    at::Tensor tensor;
    std::string name;
  };

  /// `first` and `second` are consecutive steps; `arguments` and `returned` are
  /// the tensors that the second one received and returned. Throws c10::Error
  /// with a one-sentence reason if the step can't be replayed.
  CapturedStep(const Recording &first, const Recording &second,
               const std::vector<at::Tensor> &arguments,
               std::vector<KnownTensor> known,
               const std::vector<at::Tensor> &returned,
               std::vector<at::Tensor> stepCounts);

  /// The program's numbers as recorded.
  const std::vector<DynamicScalar> &scalars() const { return numbers; }
  /// Replays pass number `expression` of their list as scalar `scalar`.
  void bindScalar(size_t scalar, size_t expression);

  /// Runs the step. Returns the reason why it can't be replayed, before any
  /// change ("" for success). `results`: one tensor for each returned one.
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
    // Both are used for their identity only, and held so that their addresses
    // aren't reused.
    at::Tensor inner;
    WeakData expected = {};
    TensorDataPtr data;
    // If other tensors share its memory, `inner` and `data` are those of the
    // memory, from which all of them get their values again.
    bool isShared = false;
    // Whether another slot has the memory of this tensor. A step that writes
    // the memory then computes the tensor's own values again.
    bool isView = false;
    bool isWritten = false, isRead = false;
    // Whether it is the chain of collectives, which other steps may continue.
    bool isOrder = false;
  };
  // A result of the program.
  struct Output {
    torch::lazy::Shape shape;
    std::vector<size_t> slots; // known tensors whose value it becomes
    // The values of the tensors that refer to it, and of their storages.
    std::vector<TensorDataPtr> states;
    std::vector<size_t> arguments; // call's tensors that it overwrites
    bool isReturned = false;
    bool isState = false; // whether the next step reads it
    HostDataPtr scratch;  // its memory if no tensor refers to it
  };

  // A tensor that the function returns.
  struct Returned {
    enum { Result, Argument, Known, Again } from;
    // Number of the result, argument or slot, or of an earlier returned tensor.
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
  std::vector<LocationId> collectives; // their Python lines
  std::vector<DynamicScalar> numbers;
  std::vector<std::pair<size_t, size_t>> boundScalars;
  std::vector<at::Tensor> stepCounts;
  std::vector<float> expectedCounts; // their values after the last step
  uint64_t backend;
  TraceEnvironment environment;
  // Values of one replay, held for their memory.
  std::vector<HostDataPtr> inputs;
};

} // namespace torch_ltc

#endif // TORCH_LTC_CAPTURE_CAPTURED_STEP_H
