//===- backend_call.cpp - Calls to a group's CPU backend ------------------===//

#include "distributed/backend_call.h"

#include "distributed/groups.h"

#include <ATen/Functions.h>

#include <unordered_map>

using namespace torch_ltc;
using at::Tensor;

namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<Tensor>;

struct Operands {
  c10d::Backend &backend;
  at::IntArrayRef numbers;
  Tensor input, output;

  std::chrono::milliseconds timeout() const {
    return std::chrono::milliseconds(numbers[0]);
  }
  c10d::ReduceOp reduction() const {
    return c10d::ReduceOp(c10d::ReduceOp::RedOpType(numbers[1]));
  }
  /// Splits a tensor into one part for each rank.
  Tensors parts(const Tensor &tensor) const {
    if (!tensor.numel()) // then the parts are empty, too
      return Tensors(size_t(backend.getSize()), tensor);
    return tensor.view({backend.getSize(), -1}).unbind();
  }
  bool isRoot(int64_t root) const { return backend.getRank() == root; }
  /// A list with the parts of a tensor at the root, an empty list at other
  /// ranks.
  std::vector<Tensors> partsAtRoot(int64_t root, const Tensor &tensor) const {
    if (!isRoot(root))
      return {};
    return {parts(tensor)};
  }
};

/// Returns options for a call of the backend, with the collective's timeout.
template <typename Options> Options optionsOf(const Operands &o) {
  Options options;
  options.timeout = o.timeout();
  return options;
}

/// Copies the input to the output, which the backend then updates in place.
/// Returns the output.
Tensor updated(const Operands &o) {
  return o.output.data_ptr() == o.input.data_ptr() ? o.output
                                                   : o.output.copy_(o.input);
}

WorkPtr allReduce(const Operands &o) {
  auto options = optionsOf<c10d::AllreduceOptions>(o);
  options.reduceOp = o.reduction();
  Tensors tensors = {updated(o)};
  return o.backend.allreduce(tensors, options);
}

WorkPtr reduce(const Operands &o) {
  auto options = optionsOf<c10d::ReduceOptions>(o);
  options.reduceOp = o.reduction();
  options.rootRank = o.numbers[2];
  Tensors tensors = {updated(o)};
  return o.backend.reduce(tensors, options);
}

WorkPtr broadcast(const Operands &o) {
  auto options = optionsOf<c10d::BroadcastOptions>(o);
  options.rootRank = o.numbers[1];
  Tensors tensors = {o.isRoot(options.rootRank) ? updated(o) : o.output};
  return o.backend.broadcast(tensors, options);
}

WorkPtr allGather(const Operands &o) {
  auto options = optionsOf<c10d::AllgatherOptions>(o);
  Tensors inputs = {o.input};
  std::vector<Tensors> outputs = {o.parts(o.output)};
  return o.backend.allgather(outputs, inputs, options);
}

WorkPtr gather(const Operands &o) {
  auto options = optionsOf<c10d::GatherOptions>(o);
  options.rootRank = o.numbers[1];
  Tensors inputs = {o.input};
  auto outputs = o.partsAtRoot(options.rootRank, o.output);
  return o.backend.gather(outputs, inputs, options);
}

WorkPtr scatter(const Operands &o) {
  auto options = optionsOf<c10d::ScatterOptions>(o);
  options.rootRank = o.numbers[1];
  Tensors outputs = {o.output};
  auto inputs = o.partsAtRoot(options.rootRank, o.input);
  return o.backend.scatter(outputs, inputs, options);
}

WorkPtr reduceScatter(const Operands &o) {
  auto options = optionsOf<c10d::ReduceScatterOptions>(o);
  options.reduceOp = o.reduction();
  Tensor output = o.output, input = o.input;
  return o.backend._reduce_scatter_base(output, input, options);
}

WorkPtr allToAll(const Operands &o) {
  auto options = optionsOf<c10d::AllToAllOptions>(o);
  size_t ranks = size_t(o.backend.getSize());
  std::vector<int64_t> outputSplits = o.numbers.slice(1, ranks).vec();
  std::vector<int64_t> inputSplits = o.numbers.slice(1 + ranks, ranks).vec();
  Tensor output = o.output, input = o.input;
  return o.backend.alltoall_base(output, input, outputSplits, inputSplits,
                                 options);
}

WorkPtr sendTo(const Operands &o) {
  Tensors tensors = {o.input};
  return o.backend.send(tensors, int(o.numbers[1]), int(o.numbers[2]));
}

WorkPtr receiveFrom(const Operands &o) {
  Tensors tensors = {o.output};
  return o.backend.recv(tensors, int(o.numbers[1]), int(o.numbers[2]));
}

WorkPtr receiveAny(const Operands &o) {
  Tensors tensors = {o.output};
  return o.backend.recvAnysource(tensors, int(o.numbers[1]));
}

} // namespace

WorkPtr torch_ltc::begin(const BackendCall &call, const Tensor &input,
                         const Tensor &output) {
  using Function = WorkPtr (*)(const Operands &);
  static const std::unordered_map<std::string_view, Function> functions = {
      {"all_reduce", allReduce},  {"reduce", reduce},
      {"broadcast", broadcast},   {"all_gather", allGather},
      {"gather", gather},         {"scatter", scatter},
      {"all_to_all", allToAll},   {"reduce_scatter", reduceScatter},
      {"send", sendTo},           {"receive", receiveFrom},
      {"receive_any", receiveAny}};
  ProcessGroupPtr group = groupOfNumber(call.group);
  return functions.at(call.kind)({*group->getBackend(c10::DeviceType::Lazy),
                                  call.numbers, input.reshape({-1}),
                                  output.view({-1})});
}
