//===- resized_graph.cpp - A graph at different sizes ---------------------===//

#include "general/resized_graph.h"

#include "general/trace_numbers.h"
#include "graph/node_arguments.h"
#include "shape/infer_shapes.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>

using namespace torch_ltc;
using torch::lazy::Shape;

namespace {

bool writesDiagonal(const SnapshotNode &node) {
  return node.record->shapeRule == ShapeRule::diagonal_scatterShape ||
         node.record->shapeRule == ShapeRule::diagonal_backwardShape;
}

/// Whether the op writes a slice whose start or end is a dynamic scalar, or a
/// diagonal whose offset is one. The op's shape rule can't be used, because it
/// compares the part's length with these numbers.
bool isPartWritten(const SnapshotNode &node) {
  if (node.record->shapeRule != ShapeRule::slice_scatterShape &&
      node.record->shapeRule != ShapeRule::slice_backwardShape &&
      !writesDiagonal(node))
    return false;
  AttributeReader reader(node.attributes->words);
  return std::ranges::any_of(node.record->arguments, [&](const auto &) {
    return reader.next().tag == Tag::dynamicInt;
  });
}

/// Returns the value of an argument; none if it isn't an integer.
std::optional<int64_t> integerOf(const SnapshotNode &node,
                                 std::string_view argument) {
  auto found = findAttribute(*node.record, node.attributes->words, argument);
  if (!found || found->tag != Tag::integer)
    return std::nullopt;
  return found->integer();
}

int64_t dimOf(const SnapshotNode &node, int64_t rank) {
  const int64_t dim = integerOf(node, "dim").value_or(0);
  return dim + (dim < 0 ? rank : 0);
}

/// The argument `input_sizes` of the gradient of a slice or diagonal: the sizes
/// of the whole tensor.
c10::ArrayRef<int64_t> inputSizes(const SnapshotNode &node) {
  auto sizes =
      findAttribute(*node.record, node.attributes->words, "input_sizes");
  return sizes ? sizes->integers() : c10::ArrayRef<int64_t>();
}

void checkAlike(bool isAlike, const SnapshotNode &node) {
  TORCH_CHECK(isAlike, "Results of ",
              node.record ? node.record->name : "a parameter",
              " differ in rank, or in which sizes are 0 or 1, at these sizes",
              messageSuffix(node.location));
}

/// Throws if `part`, whose start or end is a dynamic scalar, spans more
/// elements than `whole` has.
void checkPart(const Shape &part, const Shape &whole,
               const SnapshotNode &node) {
  if (writesDiagonal(node)) {
    const int64_t length = part.size(part.dim() - 1);
    for (const char *name : {"dim1", "dim2"}) {
      const int64_t dim = integerOf(node, name).value_or(name[3] - '1');
      TORCH_CHECK(length <= whole.size(dim < 0 ? dim + whole.dim() : dim),
                  "A diagonal is longer than a side of its matrix",
                  messageSuffix(node.location));
    }
    return;
  }
  const int64_t dim = dimOf(node, part.dim());
  for (int64_t d = 0; d < part.dim(); ++d) {
    const int64_t step = d == dim ? integerOf(node, "step").value_or(1) : 1;
    const int64_t span = (part.size(d) - 1) * step + 1;
    TORCH_CHECK(span <= whole.size(d), "A slice of ", whole.size(d),
                " elements would span ", span, " elements",
                messageSuffix(node.location));
  }
}

void setSize(Shape &shape, size_t dim, int64_t size) {
  std::vector<int64_t> sizes = shape.sizes().vec();
  sizes[dim] = size;
  shape = Shape(shape.scalar_type(), sizes);
}

} // namespace

ResizedGraph::ResizedGraph(const GraphSnapshot &base)
    : base(base), changed(base),
      scalars(base.scalarIsFloat.size(), DynamicScalar::of(int64_t(1))),
      values(base.nodes.size()) {
  for (size_t i = 0; i < scalars.size(); ++i)
    if (base.scalarIsFloat[i])
      scalars[i] = DynamicScalar::of(1.0);
}

void ResizedGraph::setParameterSize(size_t parameter, size_t dim,
                                    int64_t size) {
  setSize(changed.parameters[parameter].shape, dim, size);
}

void ResizedGraph::setResultSize(size_t position, size_t result, size_t dim,
                                 int64_t size) {
  setSize(changed.nodes[position].shapes[result], dim, size);
}

void ResizedGraph::setWords(size_t position, std::vector<Word> words) {
  SnapshotNode &node = changed.nodes[position];
  node.attributes = internAttributes(node.record->id, words);
}

void ResizedGraph::inferShapes(size_t position) {
  SnapshotNode &node = changed.nodes[position];
  if (!node.record)
    node.shapes = {changed.parameters[node.parameter].shape};
  else if (isPartWritten(node))
    inferWhole(node);
  else if (!hasSizesFromScalars(node))
    inferOp(node);
  else if (node.record->shapeRule == ShapeRule::sliceShape)
    inferPart(node);
  for (size_t k = 0; k < node.shapes.size(); ++k) {
    const Shape &shape = node.shapes[k];
    const Shape &former = base.nodes[position].shapes[k];
    for (int64_t d = 0; d < shape.dim(); ++d)
      checkAlike(shape.size(d) == former.size(d) ||
                     (shape.size(d) > 1 && former.size(d) > 1),
                 node);
  }
}

void ResizedGraph::inferPart(SnapshotNode &node) {
  const Shape &whole = changed.shape(changed.operands[node.firstOperand]);
  const int64_t dim = dimOf(node, whole.dim());
  for (int64_t d = 0; d < whole.dim(); ++d)
    if (d != dim)
      setSize(node.shapes[0], size_t(d), whole.size(d));
  checkPart(node.shapes[0], whole, node);
}

void ResizedGraph::inferWhole(SnapshotNode &node) {
  const Shape &first = changed.shape(changed.operands[node.firstOperand]);
  const bool isGradient =
      node.record->shapeRule == ShapeRule::slice_backwardShape ||
      node.record->shapeRule == ShapeRule::diagonal_backwardShape;
  Shape whole =
      isGradient ? Shape(first.scalar_type(), inputSizes(node)) : first;
  checkPart(isGradient ? first
                       : changed.shape(changed.operands[node.firstOperand + 1]),
            whole, node);
  node.shapes = {whole};
}

void ResizedGraph::inferOp(SnapshotNode &node) {
  NodeArguments builder(changed, node, values, scalars);
  AttributeReader reader(node.attributes->words);
  std::vector<c10::IValue> arguments;
  for (const ArgumentSpec &spec : node.record->arguments)
    arguments.push_back(builder.build(reader.next(), spec));
  OpCall call{.record = *node.record, .arguments = arguments};
  for (uint32_t i = 0; i < node.numOperands; ++i)
    call.operands.push_back(
        &changed.shape(changed.operands[node.firstOperand + i]));
  call.attributeHash = node.attributes->hash;
  std::vector<Shape> shapes = inferShapesOnly(call);
  checkAlike(shapes.size() == node.shapes.size(), node);
  for (size_t i = 0; i < shapes.size(); ++i) {
    checkAlike(shapes[i].dim() == node.shapes[i].dim(), node);
    // Keeps the traced dtype, because the default dtype may have changed since.
    node.shapes[i] = Shape(node.shapes[i].scalar_type(), shapes[i].sizes());
  }
}

void ResizedGraph::finish(size_t position) {
  for (const Shape &shape : changed.nodes[position].shapes) {
    finishedSizes.insert(finishedSizes.end(), shape.sizes().begin(),
                         shape.sizes().end());
    values[position].push_back(shape.scalar_type() == c10::ScalarType::Undefined
                                   ? at::Tensor()
                                   : at::Tensor(at::detail::empty_meta(
                                         shape.sizes(), shape.scalar_type())));
  }
}
