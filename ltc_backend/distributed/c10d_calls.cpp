//===- c10d_calls.cpp - Calls of torch.distributed's ops ------------------===//

#include "distributed/c10d_calls.h"

#include "tracing/writing_call.h"

#include <ATen/Functions.h>

#include <unordered_map>

using namespace torch_ltc;
using at::Tensor;
using c10::IValue;
using c10d::ReduceOp;

namespace {

using Tensors = std::vector<Tensor>;

/// The arguments of one call, in the order of its schema.
class C10dArguments {
public:
  explicit C10dArguments(c10::ArrayRef<IValue> values) : values(values) {}

  Tensors tensors(size_t i) const { return values[i].toTensorVector(); }
  Tensor tensor(size_t i) const { return values[i].toTensor(); }
  std::vector<Tensors> lists(size_t i) const {
    std::vector<Tensors> lists;
    for (const IValue &list : values[i].toListRef())
      lists.push_back(list.toTensorVector());
    return lists;
  }
  ProcessGroupPtr group(size_t i) const {
    return values[i].toCustomClass<c10d::ProcessGroup>();
  }
  int64_t reduction(size_t i) const {
    return values[i].toCustomClass<ReduceOp>()->op_;
  }
  int64_t integer(size_t i) const { return values[i].toInt(); }
  std::vector<int64_t> integers(size_t i) const {
    return values[i].toIntVector();
  }
  bool isNone(size_t i) const { return values[i].isNone(); }
  bool boolean(size_t i) const { return values[i].toBool(); }

private:
  c10::ArrayRef<IValue> values;
};

/// Whether the process groups' CPU backends can send the dtype (torch 2.13).
bool isSentDType(at::ScalarType dtype) {
  switch (dtype) {
  case at::kBool:
  case at::kByte:
  case at::kChar:
  case at::kInt:
  case at::kLong:
  case at::kHalf:
  case at::kBFloat16:
  case at::kFloat:
  case at::kDouble:
    return true;
  default:
    return false;
  }
}

bool isReducible(int64_t reduction, at::ScalarType dtype) {
  switch (reduction) {
  case ReduceOp::SUM:
  case ReduceOp::PRODUCT:
  case ReduceOp::MIN:
  case ReduceOp::MAX:
    return true;
  case ReduceOp::AVG:
    return at::isFloatingType(dtype);
  case ReduceOp::BAND:
  case ReduceOp::BOR:
  case ReduceOp::BXOR:
    return at::isIntegralType(dtype, /*includeBool=*/true);
  default:
    return false;
  }
}

bool arePlain(const Tensors &tensors) {
  for (const Tensor &tensor : tensors)
    if (!isLazyWrapper(tensor) ||
        tensor.scalar_type() != tensors[0].scalar_type() ||
        !isSentDType(tensor.scalar_type()))
      return false;
  return !tensors.empty();
}

bool haveSizesOf(const Tensors &tensors, const Tensor &first) {
  for (const Tensor &tensor : tensors)
    if (tensor.sizes() != first.sizes())
      return false;
  return true;
}

Tensor pack(const Tensors &tensors) {
  if (tensors.size() == 1)
    return tensors[0];
  Tensors flat;
  for (const Tensor &tensor : tensors)
    flat.push_back(tensor.reshape({-1}));
  return at::cat(flat);
}

int64_t elementsOf(const Tensors &tensors) {
  int64_t elements = 0;
  for (const Tensor &tensor : tensors)
    elements += tensor.numel();
  return elements;
}

class Reader {
public:
  explicit Reader(c10::ArrayRef<IValue> values) : a(values) {}

  std::optional<C10dCall> allReduce() {
    Tensors tensors = a.tensors(0);
    if (tensors.size() != 1 || !a.isNone(3))
      return std::nullopt;
    return reduced(tensors, /*reduction=*/2, /*async=*/4, "all_reduce");
  }

  std::optional<C10dCall> allReduceCoalesced() {
    return reduced(a.tensors(0), 2, 3, "all_reduce");
  }

  std::optional<C10dCall> reduce() {
    Tensors tensors = a.tensors(0);
    if (tensors.size() != 1 || a.integer(4) != 0)
      return std::nullopt;
    return reduced(tensors, 2, 5, "reduce", a.integer(3));
  }

  std::optional<C10dCall> broadcast() {
    Tensors tensors = a.tensors(0);
    if (tensors.size() != 1 || a.integer(3) != 0 || !isRank(1, a.integer(2)))
      return std::nullopt;
    return finish("broadcast", 1, {timeout(5), a.integer(2)}, tensors, tensors,
                  a.boolean(4));
  }

  std::optional<C10dCall> allGather() {
    std::vector<Tensors> outputs = a.lists(0);
    Tensors inputs = a.tensors(1);
    if (outputs.size() != 1 || inputs.size() != 1 ||
        outputs[0].size() != ranks(2) || !haveSizesOf(outputs[0], inputs[0]))
      return std::nullopt;
    return finish("all_gather", 2, {timeout(4)}, inputs, outputs[0],
                  a.boolean(3));
  }

  std::optional<C10dCall> allGatherBase() {
    return gathered({a.tensor(0)}, {a.tensor(1)}, a.boolean(3), timeout(4));
  }

  std::optional<C10dCall> allGatherCoalesced() {
    std::vector<Tensors> outputs = a.lists(0);
    Tensors inputs = a.tensors(1);
    if (outputs.size() != ranks(2))
      return std::nullopt;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Tensors ofRanks;
      for (const Tensors &ofRank : outputs)
        if (ofRank.size() == inputs.size())
          ofRanks.push_back(ofRank[i]);
      if (ofRanks.size() != outputs.size() ||
          !haveSizesOf(ofRanks, inputs[i]) ||
          !add("all_gather", 2, {-1}, {inputs[i]}, ofRanks))
        return std::nullopt;
    }
    return done(a.boolean(3));
  }

  std::optional<C10dCall> allGatherIntoTensors() {
    return gathered(a.tensors(0), a.tensors(1), a.boolean(3), -1);
  }

  std::optional<C10dCall> gather() {
    std::vector<Tensors> outputs = a.lists(0);
    Tensors inputs = a.tensors(1);
    bool isRoot = a.group(2)->getRank() == a.integer(3);
    if (inputs.size() != 1 || outputs.size() != size_t(isRoot) ||
        !isRank(2, a.integer(3)))
      return std::nullopt;
    if (isRoot &&
        (outputs[0].size() != ranks(2) || !haveSizesOf(outputs[0], inputs[0])))
      return std::nullopt;
    return finish("gather", 2, {timeout(5), a.integer(3)}, inputs,
                  isRoot ? outputs[0] : Tensors(), a.boolean(4));
  }

  std::optional<C10dCall> scatter() {
    Tensors outputs = a.tensors(0);
    std::vector<Tensors> inputs = a.lists(1);
    bool isRoot = a.group(2)->getRank() == a.integer(3);
    if (outputs.size() != 1 || inputs.size() != size_t(isRoot) ||
        !isRank(2, a.integer(3)))
      return std::nullopt;
    if (isRoot &&
        (inputs[0].size() != ranks(2) || !haveSizesOf(inputs[0], outputs[0])))
      return std::nullopt;
    return finish("scatter", 2, {timeout(5), a.integer(3)},
                  isRoot ? inputs[0] : outputs, outputs, a.boolean(4));
  }

  std::optional<C10dCall> reduceScatter() {
    Tensors outputs = a.tensors(0);
    std::vector<Tensors> inputs = a.lists(1);
    if (outputs.size() != 1 || inputs.size() != 1 ||
        inputs[0].size() != ranks(2) || !haveSizesOf(inputs[0], outputs[0]) ||
        !isReducible(a.reduction(3), outputs[0].scalar_type()))
      return std::nullopt;
    return finish("reduce_scatter", 2, {timeout(5), a.reduction(3)}, inputs[0],
                  outputs, a.boolean(4));
  }

  std::optional<C10dCall> reduceScatterBase() {
    return scattered({a.tensor(0)}, {a.tensor(1)});
  }

  std::optional<C10dCall> reduceScatterTensors() {
    return scattered(a.tensors(0), a.tensors(1));
  }

  std::optional<C10dCall> allToAll() {
    Tensors outputs = a.tensors(0), inputs = a.tensors(1);
    if (outputs.size() != ranks(2) || inputs.size() != ranks(2) ||
        !haveSizesOf(inputs, inputs[0]) || !haveSizesOf(outputs, inputs[0]))
      return std::nullopt;
    std::vector<int64_t> numbers(1 + 2 * ranks(2), inputs[0].numel());
    numbers[0] = timeout(4);
    return finish("all_to_all", 2, numbers, inputs, outputs, a.boolean(3));
  }

  std::optional<C10dCall> allToAllBase() {
    Tensor output = a.tensor(0), input = a.tensor(1);
    std::vector<int64_t> numbers = {timeout(6)};
    if (!addSplits(output, a.integers(3), numbers) ||
        !addSplits(input, a.integers(4), numbers))
      return std::nullopt;
    return finish("all_to_all", 2, numbers, {input}, {output}, a.boolean(5));
  }

  std::optional<C10dCall> send() {
    Tensors tensors = a.tensors(0);
    if (tensors.size() != 1 || !isRank(1, a.integer(2)))
      return std::nullopt;
    return finish("send", 1, {-1, a.integer(2), a.integer(3)}, tensors, {},
                  /*isAsync=*/true);
  }

  std::optional<C10dCall> receive() {
    Tensors tensors = a.tensors(0);
    if (tensors.size() != 1 || !isRank(1, a.integer(2)))
      return std::nullopt;
    return finish("receive", 1, {-1, a.integer(2), a.integer(3)}, tensors,
                  tensors, /*isAsync=*/true);
  }

  std::optional<C10dCall> receiveAny() {
    Tensors tensors = a.tensors(0);
    if (tensors.size() != 1)
      return std::nullopt;
    return finish("receive_any", 1, {-1, a.integer(2)}, tensors, tensors,
                  /*isAsync=*/true);
  }

private:
  size_t ranks(size_t group) const { return size_t(a.group(group)->getSize()); }
  int64_t timeout(size_t i) const { return a.integer(i); }
  bool isRank(size_t group, int64_t rank) const {
    return rank >= 0 && rank < a.group(group)->getSize();
  }

  /// Whether `whole` consists, along its first dimension, of one tensor with
  /// the sizes of `part` for each rank.
  bool isStackOf(const Tensor &whole, const Tensor &part) const {
    return whole.dim() && part.dim() == whole.dim() &&
           whole.size(0) == part.size(0) * int64_t(ranks(2)) &&
           whole.sizes().slice(1) == part.sizes().slice(1);
  }

  /// Appends to `numbers` how many elements each rank gets if `tensor` is
  /// divided along its first dimension. Returns false if it can't be divided as
  /// `splits` request.
  bool addSplits(const Tensor &tensor, const std::vector<int64_t> &splits,
                 std::vector<int64_t> &numbers) const {
    if (tensor.dim() == 0)
      return false;
    int64_t rows = tensor.size(0), sum = 0;
    int64_t row = c10::multiply_integers(tensor.sizes().slice(1));
    if (splits.empty()) {
      numbers.insert(numbers.end(), ranks(2),
                     tensor.numel() / int64_t(ranks(2)));
      return rows % int64_t(ranks(2)) == 0;
    }
    for (int64_t split : splits) {
      numbers.push_back(split * row);
      sum += split;
    }
    return sum == rows && splits.size() == ranks(2);
  }

  bool add(std::string kind, size_t group, std::vector<int64_t> numbers,
           const Tensors &inputs, const Tensors &outputs) {
    if (!arePlain(inputs) || (!outputs.empty() && !arePlain(outputs)) ||
        (!outputs.empty() &&
         outputs[0].scalar_type() != inputs[0].scalar_type()))
      return false;
    std::vector<int64_t> size = outputs.size() == 1
                                    ? outputs[0].sizes().vec()
                                    : std::vector<int64_t>{elementsOf(outputs)};
    call.parts.push_back({{std::move(kind), a.group(group), std::move(numbers),
                           pack(inputs), std::move(size)},
                          outputs});
    return true;
  }

  std::optional<C10dCall> done(bool isAsync) {
    call.isAsync = isAsync;
    return call.parts.empty() ? std::nullopt : std::optional(std::move(call));
  }

  std::optional<C10dCall> finish(std::string kind, size_t group,
                                 std::vector<int64_t> numbers,
                                 const Tensors &inputs, const Tensors &outputs,
                                 bool isAsync) {
    if (!add(std::move(kind), group, std::move(numbers), inputs, outputs))
      return std::nullopt;
    return done(isAsync);
  }

  /// Reads a call that reduces `tensors` in place.
  std::optional<C10dCall> reduced(const Tensors &tensors, size_t reduction,
                                  size_t async, const char *kind,
                                  std::optional<int64_t> root = {}) {
    if (tensors.empty() ||
        !isReducible(a.reduction(reduction), tensors[0].scalar_type()))
      return std::nullopt;
    std::vector<int64_t> numbers = {timeout(async + 1), a.reduction(reduction)};
    if (root) {
      if (!isRank(1, *root))
        return std::nullopt;
      numbers.push_back(*root);
    }
    return finish(kind, 1, std::move(numbers), tensors, tensors,
                  a.boolean(async));
  }

  std::optional<C10dCall> gathered(const Tensors &outputs,
                                   const Tensors &inputs, bool isAsync,
                                   int64_t timeout) {
    if (outputs.size() != inputs.size())
      return std::nullopt;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!isStackOf(outputs[i], inputs[i]) ||
          !add("all_gather", 2, {timeout}, {inputs[i]}, {outputs[i]}))
        return std::nullopt;
    return done(isAsync);
  }

  std::optional<C10dCall> scattered(const Tensors &outputs,
                                    const Tensors &inputs) {
    if (outputs.size() != inputs.size())
      return std::nullopt;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].numel() != outputs[i].numel() * int64_t(ranks(2)) ||
          !isReducible(a.reduction(3), outputs[i].scalar_type()) ||
          !add("reduce_scatter", 2, {timeout(5), a.reduction(3)}, {inputs[i]},
               {outputs[i]}))
        return std::nullopt;
    return done(a.boolean(4));
  }

  C10dArguments a;
  C10dCall call;
};

} // namespace

std::optional<C10dCall> torch_ltc::readCall(const std::string &name,
                                            c10::ArrayRef<IValue> arguments) {
  using Read = std::optional<C10dCall> (Reader::*)();
  static const std::unordered_map<std::string, Read> readers = {
      {"c10d::allreduce_", &Reader::allReduce},
      {"c10d::allreduce_coalesced_", &Reader::allReduceCoalesced},
      {"c10d::reduce_", &Reader::reduce},
      {"c10d::broadcast_", &Reader::broadcast},
      {"c10d::allgather_", &Reader::allGather},
      {"c10d::_allgather_base_", &Reader::allGatherBase},
      {"c10d::allgather_coalesced_", &Reader::allGatherCoalesced},
      {"c10d::allgather_into_tensor_coalesced_", &Reader::allGatherIntoTensors},
      {"c10d::gather_", &Reader::gather},
      {"c10d::scatter_", &Reader::scatter},
      {"c10d::reduce_scatter_", &Reader::reduceScatter},
      {"c10d::_reduce_scatter_base_", &Reader::reduceScatterBase},
      {"c10d::reduce_scatter_tensor_coalesced_", &Reader::reduceScatterTensors},
      {"c10d::alltoall_", &Reader::allToAll},
      {"c10d::alltoall_base_", &Reader::allToAllBase},
      {"c10d::send", &Reader::send},
      {"c10d::recv_", &Reader::receive},
      {"c10d::recv_any_source_", &Reader::receiveAny}};
  auto reader = readers.find(name);
  if (reader == readers.end())
    return std::nullopt;
  return (Reader(arguments).*reader->second)();
}
