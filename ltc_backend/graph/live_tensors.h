//===- live_tensors.h - Tensors with a pending graph, by thread -*- C++ -*-===//
//
// Each tracing thread has a set of the tensors whose values are still graphs. A
// step computes the set of the thread that ends it, so threads that train
// different models don't interfere. When a thread ends, the thread that ends
// the next step takes over its set.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_LIVE_TENSORS_H
#define TORCH_LTC_GRAPH_LIVE_TENSORS_H

#include "graph/view_values.h"
#include "memory/host_data.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/lazy/core/tensor.h>

#include <memory>
#include <unordered_set>
#include <vector>

namespace torch_ltc {

class LiveSet;
class TensorData;
struct ThreadSet;
using TensorDataPtr = std::shared_ptr<TensorData>;

/// State of a lazy tensor: a pending graph (`ir_value`), or data (`handle`).
/// The trace lock guards the base class's fields, because threads other than
/// the one that created a tensor may use it.
class TensorData final : public torch::lazy::LazyTensor::Data,
                         public std::enable_shared_from_this<TensorData> {
public:
  static TensorDataPtr create(torch::lazy::Value value);
  static TensorDataPtr create(HostDataPtr data);

  TensorData(torch::lazy::Value value, std::shared_ptr<LiveSet> set);
  TensorData(HostDataPtr data, std::shared_ptr<LiveSet> set);
  ~TensorData() override;

  /// The graph that computes the value; a `DataNode` if the value has been
  /// computed.
  torch::lazy::Value value();
  /// Replaces the value, for an in-place write to a tensor without
  /// functionalization.
  void setValue(torch::lazy::Value value);
  void setData(HostDataPtr data);
  /// Sets the data if the value is still the graph `computed`.
  void setData(const torch::lazy::Value &computed, HostDataPtr data);
  /// The data; null while the value is a graph.
  HostDataPtr data();
  bool isPending();
  torch::lazy::Shape shapeValue();

  /// The set of the thread that created the tensor.
  const std::shared_ptr<LiveSet> &traceSet() const { return liveSet; }

private:
  friend class LiveSet;
  std::shared_ptr<LiveSet> liveSet;
  TensorData *previous = nullptr, *next = nullptr;
  bool isLinked = false;
};

class LiveSet : public std::enable_shared_from_this<LiveSet> {
public:
  /// The calling thread's set.
  static const std::shared_ptr<LiveSet> &ofThisThread();

  /// The sets of all threads, also of ended ones whose tensors are in use.
  static std::vector<std::shared_ptr<LiveSet>> all();

  /// Returns the pending tensors of this set and of ended threads, in the order
  /// of `sortForGraph`.
  std::vector<TensorDataPtr> pending();
  size_t numPending();
  /// Number of times that a tensor of the set became pending.
  uint64_t numTraced();
  /// Whether the set's thread has ended.
  bool isOfEndedThread() const { return hasEnded; }

  // Members for graph/effects.h.
  /// Makes `tensor` the end of the thread's chain of collectives.
  void setEffects(int64_t chain, const TensorDataPtr &tensor);
  /// The number of the thread's chain; 0 if it has traced no collective.
  int64_t chain() const { return chainNumber; }
  bool isEndOfChain(const TensorDataPtr &tensor) const {
    return endOfChain == tensor.get();
  }
  bool hasPendingEffects();
  /// Notes a pending node that waits for a collective, which may be done once.
  /// Holds no reference: a node with references from outside its graph would
  /// prevent donation.
  void noteWait(const torch::lazy::NodePtr &wait);
  /// To be called when a graph with all pending effects has been scheduled.
  void noteEffectsScheduled();

  // Members for graph/view_values.h.
  /// Notes that `view`, a functional wrapper, was just written.
  void noteWrittenView(const at::Tensor &view);
  /// Notes that `view` and `base`, functional wrappers, share memory.
  void noteView(const at::Tensor &view, const at::Tensor &base);

  /// Nodes of a graph.
  using Nodes = std::unordered_set<const torch::lazy::Node *>;
  /// The nodes of pending collectives, and of pending waits for collectives.
  Nodes effectNodes();
  /// Adds the set's pending tensors that depend on one of `nodes`.
  void collectDependents(const Nodes &nodes,
                         std::vector<TensorDataPtr> &result);

private:
  friend class TensorData;
  friend struct ThreadSet;
  void link(TensorData &data);
  void unlink(TensorData &data);
  void collect(std::vector<TensorDataPtr> &result);

  TensorData *first = nullptr, *last = nullptr;
  size_t count = 0;
  uint64_t numLinked = 0;
  bool hasEnded = false;
  int64_t chainNumber = 0;
  TensorData *endOfChain = nullptr;
  std::vector<std::weak_ptr<torch::lazy::Node>> waits;
  ViewValues views;
};

/// Number of lazy tensors in the process.
int64_t numLiveTensors();

/// Returns the state of a lazy tensor, or null if `tensor` isn't lazy. If
/// `tensor` is a functional wrapper, first applies its pending updates.
TensorDataPtr tensorDataOf(const at::Tensor &tensor);

/// The tensor's dispatch keys, a protected member of TensorImpl (torch 2.13).
c10::DispatchKeySet &dispatchKeysOf(c10::TensorImpl &tensor);

/// Whether a second thread has traced.
bool isTracedByThreads();
/// Whether another thread may schedule what a thread has traced: a second
/// thread has traced, or `expectSecondScheduler` was called.
bool isScheduledByThreads();
void expectSecondScheduler();
/// `hook` is called once, when a second thread traces.
void onSecondThread(void (*hook)());

/// Guards the state of lazy tensors, including functionalization's, for code
/// that isn't a kernel of an op. (Kernels of ops are serialized; see
/// eager_semantics/locked_ops.cpp.)
class TensorAccess {
public:
  TensorAccess();
  ~TensorAccess();
  TensorAccess(const TensorAccess &) = delete;
  TensorAccess &operator=(const TensorAccess &) = delete;
};

/// A new lazy tensor, without a functional wrapper.
at::Tensor makeTensor(TensorDataPtr data, at::IntArrayRef sizes);
at::Tensor makeTensor(torch::lazy::Value value);
at::Tensor makeTensor(HostDataPtr data);
/// A new row-major lazy tensor with the value of `tensor`, without a functional
/// wrapper.
at::Tensor withValueOf(const at::Tensor &tensor);

/// Sets the strides and the storage offset that the tensor reports; its
/// elements in memory stay packed (shape/strides.h). `tensor` has no functional
/// wrapper.
void setGeometry(const at::Tensor &tensor, at::IntArrayRef strides,
                 int64_t offset = 0);
/// Whether several elements of the tensor have the same address, as in an
/// expanded tensor.
bool hasRepeatedElements(const at::Tensor &tensor);
/// Gives `value` the geometry of `previous`, the former value of the same
/// memory. Does nothing if they aren't values of lazy tensors, or if `previous`
/// has repeated elements, which may differ in `value`.
void keepGeometry(const at::Tensor &value, const at::Tensor &previous);
/// Makes `tensor` row-major with these sizes. Must be called after data with
/// different sizes was assigned to it.
void resetSizes(const at::Tensor &tensor, at::IntArrayRef sizes);
/// Whether the tensor reports the geometry of a new tensor of its sizes.
bool isPacked(const at::Tensor &tensor);

/// Wraps the result of a kernel that is called from outside functionalization
/// (for example, of a factory or of a move from the CPU). Returns the tensor
/// unchanged inside functionalization.
at::Tensor wrapIfOutside(at::Tensor tensor);
/// Replaces the version counter of a new wrapper, which the wrapper shares with
/// its value. torch's factories return a copy of a tensor whose counter is
/// shared, and a dispatch mode or torch.jit.trace has no record of that copy
/// (torch 2.13).
void useOwnVersionCounter(const at::Tensor &wrapper);

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_LIVE_TENSORS_H
