//===- Nodes.h - Nodes for tests --------------------------------*- C++ -*-===//

#ifndef TORCH_LTC_TEST_NODES_H
#define TORCH_LTC_TEST_NODES_H

#include "ir/node.h"

#include <ATen/Functions.h>

namespace torch_ltc {

inline torch::lazy::Shape floats(c10::ArrayRef<int64_t> sizes) {
  return torch::lazy::Shape(at::kFloat, sizes);
}

/// New float32 data of these sizes.
inline torch::lazy::Value data(c10::ArrayRef<int64_t> sizes = {2, 2}) {
  return torch::lazy::Value(
      std::make_shared<DataNode>(HostData::copyOf(at::ones(sizes))));
}

/// The argument encoding of `aten::<op>.Tensor(self, other, alpha=<scalar>)`
/// or, without alpha, of `aten::<op>.Tensor(self, other)`.
inline std::vector<Word> binaryWords(bool hasAlpha) {
  AttributeWriter writer;
  writer.operand();
  writer.operand();
  if (hasAlpha)
    writer.header(Tag::dynamicFloat);
  return {writer.words.begin(), writer.words.end()};
}

inline torch::lazy::Value binary(const char *name, const torch::lazy::Value &a,
                                 const torch::lazy::Value &b,
                                 std::optional<double> alpha = {}) {
  const OpRecord &record = getOpRecord(name);
  std::vector<DynamicScalar> scalars;
  if (alpha)
    scalars.push_back(DynamicScalar::of(*alpha));
  return torch::lazy::Value(std::make_shared<OpNode>(
      record, std::vector<torch::lazy::Value>{a, b},
      internAttributes(record.id, binaryWords(alpha.has_value())), scalars,
      std::vector<torch::lazy::Shape>{a.shape()}));
}

inline torch::lazy::Value sub(const torch::lazy::Value &a,
                              const torch::lazy::Value &b, double alpha = 1) {
  return binary("aten::sub.Tensor", a, b, alpha);
}

inline torch::lazy::Value mul(const torch::lazy::Value &a,
                              const torch::lazy::Value &b) {
  return binary("aten::mul.Tensor", a, b);
}

inline torch::lazy::Output output(const torch::lazy::Value &value) {
  return torch::lazy::Output(value.node.get(), value.index);
}

} // namespace torch_ltc

#endif // TORCH_LTC_TEST_NODES_H
