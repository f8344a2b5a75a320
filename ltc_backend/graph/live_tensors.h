//===- live_tensors.h - Tensors with a pending graph, by thread -*- C++ -*-===//
//
// Each thread that traces has a set of the tensors whose values are still
// graphs. A step computes the set of the thread that ends it; so threads that
// train different models don't meet. When a thread ends, its set is left to
// whoever ends a step next.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_LIVE_TENSORS_H
#define TORCH_LTC_GRAPH_LIVE_TENSORS_H

#include "memory/host_data.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/lazy/core/tensor.h>

#include <memory>
#include <vector>

namespace torch_ltc {

class LiveSet;
class TensorData;
using TensorDataPtr = std::shared_ptr<TensorData>;

/// State of a lazy tensor: a pending graph (`ir_value`), or data (`handle`).
/// The base class's fields are guarded by the trace lock, since a tensor may be
/// used by other threads than the one that made it.
class TensorData final : public torch::lazy::LazyTensor::Data,
                         public std::enable_shared_from_this<TensorData> {
public:
  static TensorDataPtr create(torch::lazy::Value value);
  static TensorDataPtr create(HostDataPtr data);

  TensorData(torch::lazy::Value value, std::shared_ptr<LiveSet> set);
  TensorData(HostDataPtr data, std::shared_ptr<LiveSet> set);
  ~TensorData() override;

  /// The graph that computes the value; a `DataNode` if the value is there.
  torch::lazy::Value value();
  /// Replaces the value (an in-place write on a tensor without
  /// functionalisation).
  void setValue(torch::lazy::Value value);
  void setData(HostDataPtr data);
  /// The same if the value is still this graph.
  void setData(const torch::lazy::Value &computed, HostDataPtr data);
  /// The data, null while the value is a graph.
  HostDataPtr data();
  bool isPending();
  torch::lazy::Shape shapeValue();

  /// Of the thread that made it.
  LiveSet &traceSet() { return *liveSet; }

private:
  friend class LiveSet;
  std::shared_ptr<LiveSet> liveSet;
  TensorData *previous = nullptr, *next = nullptr;
  bool isLinked = false;
};

class LiveSet : public std::enable_shared_from_this<LiveSet> {
public:
  /// The calling thread's.
  static const std::shared_ptr<LiveSet> &ofThisThread();

  /// Pending tensors of this set and of threads that have ended, in the order
  /// in which they were made.
  std::vector<TensorDataPtr> pending();
  size_t numPending();

private:
  friend class TensorData;
  void link(TensorData &data);
  void unlink(TensorData &data);
  void collect(std::vector<TensorDataPtr> &result);

  TensorData *first = nullptr, *last = nullptr;
  size_t count = 0;
};

/// `tensor` is the end of what a trace does beside computing values (the chain
/// of collectives): it must happen once.
void setEffects(TensorDataPtr tensor);
/// Completes `tensors`, of which the graph is about to run: if effects are
/// pending in a trace, all of that trace runs now, so that no other graph has
/// their nodes afterwards.
void addTraceOfEffects(std::vector<TensorDataPtr> &tensors);

/// Number of lazy tensors in the process.
int64_t numLiveTensors();

/// The state of a lazy tensor, looking through the functional wrapper after
/// applying its pending updates; null if `tensor` isn't lazy.
TensorDataPtr tensorDataOf(const at::Tensor &tensor);

/// `hook` is called once, before the first lazy tensor is made.
void onFirstTensor(void (*hook)());
/// Calls that hook unless it was called.
void prepareFirstTensor();
/// `hook` is called once, when a second thread makes a lazy tensor.
void onSecondThread(void (*hook)());

/// A lazy tensor, without a functional wrapper.
at::Tensor makeTensor(TensorDataPtr data, at::IntArrayRef sizes);
at::Tensor makeTensor(torch::lazy::Value value);
at::Tensor makeTensor(HostDataPtr data);
/// A new one, row-major, with the value of `tensor`.
at::Tensor withValueOf(const at::Tensor &tensor);

/// What the tensor reports as strides and storage offset; its elements lie
/// packed (shape/strides.h). `tensor` has no functional wrapper.
void setGeometry(const at::Tensor &tensor, at::IntArrayRef strides,
                 int64_t offset = 0);
/// For data of other sizes that was put behind `tensor`: row-major again.
void resetSizes(const at::Tensor &tensor, at::IntArrayRef sizes);
/// Whether it reports what a new tensor of its sizes would.
bool isPacked(const at::Tensor &tensor);

/// For kernels that are entered from outside of functionalisation (factories,
/// moves from the CPU): wraps the result unless we are inside of it.
at::Tensor wrapIfOutside(at::Tensor tensor);

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_LIVE_TENSORS_H
