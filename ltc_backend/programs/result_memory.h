//===- result_memory.h - Memory of interpreted results ----------*- C++ -*-===//
//
// A result that updates a donatable parameter takes that parameter's memory.
// Its op writes directly to this memory if nothing reads the old value
// afterwards and no later op can fail, as in an optimizer; otherwise the value
// is copied at the end. The output buffer of any other contiguous result gets
// the memory that the op's kernel has allocated, unless other values share it;
// then the result is copied as soon as it exists, so that no value is held
// twice.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_PROGRAMS_RESULT_MEMORY_H
#define TORCH_LTC_PROGRAMS_RESULT_MEMORY_H

#include "memory/buffer.h"
#include "programs/program.h"

#include <unordered_map>

namespace torch_ltc {

/// The addresses of a run's results. A deferred buffer gets its memory only
/// when its result is stored, so that results of later ops don't add to the
/// memory of temporary values.
class ResultAddresses {
public:
  ResultAddresses() = default;
  /// `addresses`: null for deferred buffers; `buffers` may be empty if there
  /// are none.
  ResultAddresses(c10::ArrayRef<void *> addresses,
                  c10::ArrayRef<BufferPtr> buffers)
      : addresses(addresses.vec()), buffers(buffers) {}

  bool empty() const { return addresses.empty(); }
  /// Throws RunError if no memory is left.
  void *at(size_t result);
  /// Gives the memory of `value` to the result's deferred buffer. Returns false
  /// if the result has memory.
  bool give(size_t result, const at::Tensor &value);

private:
  std::vector<void *> addresses;
  c10::ArrayRef<BufferPtr> buffers;
};

class ResultMemory {
public:
  using Values = std::vector<std::vector<at::Tensor>>;

  /// Sets the places in `plans`, one for each result. `graph` must outlive the
  /// object.
  ResultMemory(const GraphSnapshot &graph, std::vector<OutputPlan> &plans);

  /// Memory into which an `out` kernel of the node can write all its results;
  /// empty if there is none. Called before the node's operands are released.
  std::vector<at::Tensor> ofNode(size_t position, const Values &values,
                                 ResultAddresses &addresses) const;
  /// Whether a result of the node takes a parameter's memory, so that running
  /// the node may overwrite the parameter.
  bool overwrites(size_t position) const;

  /// Moves the node's contiguous results to their addresses, except those that
  /// take a parameter's memory. Must be called after the node has run.
  void store(size_t position, Values &values, ResultAddresses &addresses) const;
  /// Copies the results that aren't at their addresses yet to these. Must be
  /// called after the last node has run.
  void fill(Values &values, ResultAddresses &addresses) const;

private:
  bool mayOverwrite(size_t position, size_t index, size_t output,
                    const Values &values) const;

  const GraphSnapshot &graph;
  std::vector<OutputPlan> plans;
  /// For each node, the index of each of its results among the graph's results,
  /// or `none`.
  std::unordered_map<size_t, std::vector<size_t>> outputsOfNodes;
  /// For each parameter, its node, and the last node that reads it.
  std::vector<size_t> nodes, lastReaders;
  /// The last node whose op may fail because of values.
  size_t lastFailing = 0;
};

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_RESULT_MEMORY_H
