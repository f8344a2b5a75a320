//===- trace_numbers.cpp - A graph's skeleton and its numbers -------------===//

#include "general/trace_numbers.h"

#include <algorithm>
#include <limits>

using namespace torch_ltc;

namespace {

/// Returns the word that replaces `number`, which isn't part of the skeleton,
/// in the skeleton's hash.
uint64_t placeholder(int64_t number) {
  return number < 0 ? 1u << 30 : 1u << 29;
}

class TraceNumbersReader {
public:
  explicit TraceNumbersReader(const GraphSnapshot &graph) : graph(graph) {
    numbers.sizes.reserve(4 * graph.nodes.size());
  }

  TraceNumbers read() {
    for (const SnapshotNode &node : graph.nodes) {
      if (node.record)
        addOp(node);
      else
        hash.add(node.parameter);
      for (const torch::lazy::Shape &shape : node.shapes)
        addShape(shape);
    }
    for (const ResultRef &result : graph.results)
      addReference(result);
    for (const SnapshotParameter &parameter : graph.parameters) {
      hash.add(parameter.donatable);
      for (uint32_t d = 0; d < parameter.shape.dim(); ++d)
        if (isMarkedStatic(parameter.marks, d))
          hash.add(uint64_t(d) << 48 | uint64_t(parameter.shape.size(d)));
    }
    for (bool isFloat : graph.scalarIsFloat)
      hash.add(isFloat);
    numbers.skeleton = hash.finish();
    return std::move(numbers);
  }

private:
  void addReference(const ResultRef &ref) {
    hash.add(uint64_t(ref.position) << 32 | ref.index);
  }

  void addShape(const torch::lazy::Shape &shape) {
    hash.add(uint64_t(shape.scalar_type()) << 8 | uint64_t(shape.dim()));
    uint64_t pattern = 1;
    for (int64_t size : shape.sizes()) {
      numbers.sizes.push_back(size);
      pattern = pattern << 2 | uint64_t(std::min<int64_t>(size, 2));
      if (pattern >> 60) {
        hash.add(pattern);
        pattern = 1;
      }
    }
    hash.add(pattern);
  }

  void addOp(const SnapshotNode &node) {
    hash.add(node.record->id);
    const AttributeWriter written = withoutTexts(node);
    c10::ArrayRef<Word> words = written.words;
    size_t next = 0;
    forEachFollowingWord(*node.record, words,
                         [&](const ArgumentSpec &, size_t position) {
                           addWords(words, next, position);
                           hash.add(placeholder(words[position]));
                           numbers.integers.push_back(words[position]);
                           next = position + 1;
                         });
    addWords(words, next, words.size());
    for (uint32_t i = 0; i < node.numOperands; ++i)
      addReference(graph.operands[node.firstOperand + i]);
  }

  void addWords(c10::ArrayRef<Word> words, size_t begin, size_t end) {
    for (Word word : words.slice(begin, end - begin))
      hash.add(uint64_t(word));
  }

  /// Returns the arguments, with an empty string for each text that names
  /// sizes. The skeleton doesn't need these texts: a program whose check fails
  /// reads the text from the traced graph.
  static AttributeWriter withoutTexts(const SnapshotNode &node) {
    const std::vector<Word> &words = node.attributes->words;
    AttributeWriter result;
    AttributeReader reader(words);
    for (const ArgumentSpec &spec : node.record->arguments) {
      const Word *begin = reader.current();
      if (reader.next().tag == Tag::string && spec.followsSizes)
        result.string("");
      else
        result.words.append(begin, reader.current());
    }
    result.words.append(reader.current(), words.data() + words.size());
    return result;
  }

  const GraphSnapshot &graph;
  HashState hash{10};
  TraceNumbers numbers;
};

} // namespace

TraceNumbers torch_ltc::numbersOf(const GraphSnapshot &graph) {
  return TraceNumbersReader(graph).read();
}

/// Returns the position of a slice's end among the node's words, and the size
/// of the sliced dimension; none if the node isn't a slice with a constant end.
static std::optional<std::pair<size_t, int64_t>>
endOfSlice(const GraphSnapshot &graph, const SnapshotNode &node) {
  if (!node.record)
    return std::nullopt;
  const ShapeRule rule = node.record->shapeRule;
  const bool isRead = rule == ShapeRule::sliceShape;
  if (!isRead && rule != ShapeRule::slice_backwardShape &&
      rule != ShapeRule::slice_scatterShape)
    return std::nullopt;
  const torch::lazy::Shape &shape =
      isRead ? graph.shape(graph.operands[node.firstOperand]) : node.shapes[0];
  const std::vector<Word> &words = node.attributes->words;
  auto dim = findAttribute(*node.record, words, "dim"),
       end = findAttribute(*node.record, words, "end");
  if (dim->tag != Tag::integer || end->tag != Tag::integer)
    return std::nullopt;
  const int64_t place = dim->integer() + (dim->integer() < 0 ? shape.dim() : 0);
  return std::pair(size_t(end->payload - words.data()), shape.size(place));
}

GraphSnapshotPtr torch_ltc::withOpenEnds(const GraphSnapshotPtr &graph) {
  constexpr int64_t open = std::numeric_limits<int64_t>::max();
  std::shared_ptr<GraphSnapshot> changed;
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    const SnapshotNode &node = graph->nodes[i];
    auto end = endOfSlice(*graph, node);
    if (!end || int64_t(node.attributes->words[end->first]) <= end->second ||
        int64_t(node.attributes->words[end->first]) == open)
      continue;
    if (!changed)
      changed = std::make_shared<GraphSnapshot>(*graph);
    std::vector<Word> words = node.attributes->words;
    words[end->first] = Word(open);
    changed->nodes[i].attributes = internAttributes(node.record->id, words);
  }
  return changed ? changed : graph;
}

bool torch_ltc::hasSizesFromScalars(const SnapshotNode &node) {
  switch (node.record->shapeRule) {
  case ShapeRule::arangeShape:
  case ShapeRule::sliceShape:
  case ShapeRule::diagonalShape:
  case ShapeRule::constant_padShape:
    break;
  default:
    return false;
  }
  AttributeReader reader(node.attributes->words);
  for (const ArgumentSpec &spec : node.record->arguments) {
    Tag tag = reader.next().tag;
    if (spec.varies && (tag == Tag::dynamicInt || tag == Tag::dynamicFloat ||
                        tag == Tag::dynamicIntegers))
      return true;
  }
  return false;
}
