//===- predicted_traces.cpp - Predicts traces at other sizes --------------===//

#include "general/predicted_traces.h"

#include "general/resized_graph.h"
#include "general/size_sources.h"
#include "shape/shape_inference.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

using namespace torch_ltc;

namespace {

/// Maximum number of combinations that are tried for the integers of one op.
constexpr size_t kMaxTrials = 64;
/// Maximum number of sizes of parameters that a prediction derives from
/// rejected ops.
constexpr size_t kMaxRequired = 16;

/// A size in the trace, and its predicted value.
struct OtherSize {
  int64_t present, other;
};

struct MarkedSize {
  uint32_t parameter, dim;
  int64_t present;
  SizeMark mark;
};

/// Which sizes of parameters the prediction changes.
enum class Affected : uint8_t {
  Marked,  ///< those that are marked
  SameDim, ///< as `Marked`, and equal sizes of the same dimension of other
           ///< parameters (for example, of a batch's labels)
  AllEqual ///< as `Marked`, and all equal sizes
};

/// Predicted sizes of parameters, by parameter and dimension.
using RequiredSizes = std::map<std::pair<uint32_t, uint32_t>, int64_t>;

class Prediction {
public:
  Prediction(const GraphSnapshot &base, c10::ArrayRef<MarkedSize> marked,
             c10::ArrayRef<OtherSize> others, const RequiredSizes &required)
      : base(base), marked(marked), others(others), required(required),
        resized(base) {}

  /// Returns the predicted numbers. `fromSeen`: whether an integer of an op may
  /// follow from an equal size of any earlier value, not only of an operand
  /// (for example, in `zeros(batch, 8)`). Throws c10::Error if an op rejects
  /// the sizes.
  TraceNumbers run(Affected affected, bool fromSeen) {
    IgnoredUserModes ignored;
    isFromSeen = fromSeen;
    resizeParameters(affected);
    for (position = 0; position < base.nodes.size(); ++position) {
      if (base.nodes[position].record)
        inferOp();
      else
        resized.inferShapes(position);
      resized.finish(position);
      noteSizes(position);
    }
    return numbersOf(resized.graph());
  }

  /// To be called after `run` threw: adds to `all` the sizes of parameters that
  /// the rejected op requires. Such a size must equal a size of another operand
  /// that the prediction changed: the number of a layer's input features, if
  /// the layer follows `flatten`. Returns whether a size was added.
  bool addRequired(RequiredSizes &all) const {
    const SnapshotNode &node = base.nodes[position];
    const size_t before = all.size();
    for (uint32_t i = 0; node.record && i < node.numOperands; ++i) {
      ResultRef ref = base.operands[node.firstOperand + i];
      const torch::lazy::Shape &now = base.shape(ref);
      for (uint32_t d = 0; d < now.dim(); ++d)
        if (now.size(d) == resized.graph().shape(ref).size(d))
          for (const OtherSize &size : sizesOfOperands(node))
            if (size.present == now.size(d) && size.other != size.present)
              addSource(ref, d, size.other, all);
    }
    return all.size() > before;
  }

private:
  /// Adds the parameter's size from which dimension `dim` of `ref` gets its
  /// size, and the same size of equally shaped parameters, such as an
  /// optimizer's states.
  void addSource(ResultRef ref, uint32_t dim, int64_t other,
                 RequiredSizes &all) const {
    while (base.nodes[ref.position].record) {
      auto source = sourceOfSize(base, ref, dim);
      if (!source)
        return;
      std::tie(ref, dim) = *source;
    }
    const uint32_t found = base.nodes[ref.position].parameter;
    const auto shape = base.parameters[found].shape.sizes();
    for (uint32_t p = 0; p < base.parameters.size(); ++p)
      if (base.parameters[p].shape.sizes() == shape &&
          !isMarkedStatic(base.parameters[p].marks, dim))
        all.try_emplace({p, dim}, other);
  }

  void resizeParameters(Affected affected) {
    for (uint32_t p = 0; p < base.parameters.size(); ++p) {
      const SnapshotParameter &parameter = base.parameters[p];
      for (uint32_t d = 0; d < parameter.shape.dim(); ++d)
        if (!isMarkedStatic(parameter.marks, d))
          if (auto other = otherSize(p, d, affected))
            resized.setParameterSize(p, d, *other);
    }
  }

  std::optional<int64_t> otherSize(uint32_t parameter, uint32_t dim,
                                   Affected affected) const {
    auto known = required.find({parameter, dim});
    if (known != required.end())
      return known->second;
    int64_t size = base.parameters[parameter].shape.size(dim);
    for (size_t i = 0; i < marked.size(); ++i) {
      const MarkedSize &known = marked[i];
      bool isIt = known.parameter == parameter && known.dim == dim;
      bool isLike = affected == Affected::AllEqual ||
                    (affected == Affected::SameDim && known.dim == dim);
      if (isIt || (isLike && known.present == size))
        return others[i].other;
    }
    return std::nullopt;
  }

  /// Returns the values that `number`, an integer argument of the node, may
  /// have at the other sizes, the likeliest first.
  std::vector<int64_t> candidates(const SnapshotNode &node,
                                  int64_t number) const {
    std::vector<int64_t> result;
    auto add = [&](int64_t value) {
      if (std::ranges::find(result, value) == result.end())
        result.push_back(value);
    };
    auto addNear = [&](c10::ArrayRef<OtherSize> sizes, int64_t least) {
      for (const OtherSize &size : sizes)
        if (size.present != size.other && number >= least &&
            std::abs(size.present - number) <= 2)
          add(size.other + number - size.present);
    };
    std::vector<OtherSize> sizes = sizesOfOperands(node);
    for (const OtherSize &size : sizes)
      if (size.present == number && size.other != number)
        add(size.other);
    addProducts(node, number, add);
    if (isFromSeen)
      for (const OtherSize &size : seen)
        if (size.present == number)
          add(size.other);
    if (isCut(node)) { // [:n - 1], [: n // 2]
      addNear(sizes, /*least=*/5);
      for (const OtherSize &size : sizes)
        if (size.present == 2 * number)
          add(size.other / 2);
    }
    add(number);
    addNear(sizes, /*least=*/2);
    addNear(seen, /*least=*/2);
    for (const OtherSize &size : others)
      if (number * size.other % size.present == 0)
        add(number * size.other / size.present);
    return result;
  }

  static bool isCut(const SnapshotNode &node) {
    ShapeRule rule = node.record->shapeRule;
    return rule == ShapeRule::sliceShape || rule == ShapeRule::arangeShape;
  }

  std::vector<OtherSize> sizesOfOperands(const SnapshotNode &node) const {
    std::vector<OtherSize> result;
    for (uint32_t i = 0; i < node.numOperands; ++i) {
      ResultRef ref = base.operands[node.firstOperand + i];
      const auto &now = base.shape(ref), &then = resized.graph().shape(ref);
      for (int64_t d = 0; d < now.dim(); ++d)
        result.push_back({now.size(d), then.size(d)});
    }
    return result;
  }

  /// If `number` is a product of consecutive sizes of the operands, as the size
  /// of a flattened dimension is, adds the product at the other sizes.
  template <typename Add>
  void addProducts(const SnapshotNode &node, int64_t number, Add add) const {
    std::vector<OtherSize> sizes = sizesOfOperands(node);
    for (size_t begin = 0; begin < sizes.size(); ++begin) {
      OtherSize product{1, 1};
      for (size_t i = begin; i < sizes.size(); ++i) {
        product.present *= sizes[i].present;
        product.other *= sizes[i].other;
        if (product.present > number || product.present <= 0)
          break;
        if (product.present == number && product.other != number)
          add(product.other);
      }
    }
  }

  /// Candidates for each integer, by its place among the node's words.
  using Choices = std::vector<std::pair<size_t, std::vector<int64_t>>>;

  /// Infers the node's shapes with the likeliest combination of candidates that
  /// the op accepts: the one whose candidates have the lowest sum of ranks. The
  /// first integers keep their likeliest candidate longest, because the leading
  /// dimensions usually are batch dimensions.
  void inferOp() {
    const SnapshotNode &node = base.nodes[position];
    Choices choices;
    forEachFollowingWord(*node.record, node.attributes->words,
                         [&](const ArgumentSpec &, size_t place) {
                           choices.emplace_back(
                               place,
                               candidates(node, node.attributes->words[place]));
                         });
    size_t maxRank = 0, trials = 0;
    for (const auto &[place, values] : choices)
      maxRank += values.size() - 1;
    for (size_t rank = 0; rank <= maxRank && trials < kMaxTrials; ++rank)
      if (tryRank(choices, rank, node.attributes->words, trials))
        return;
    resized.setWords(position, node.attributes->words);
    resized.inferShapes(position);
  }

  bool tryRank(c10::ArrayRef<Choices::value_type> choices, size_t rank,
               std::vector<Word> words, size_t &trials) {
    if (choices.empty()) {
      if (rank > 0 || trials == kMaxTrials)
        return false;
      ++trials;
      resized.setWords(position, std::move(words));
      try {
        resized.inferShapes(position);
        return true;
      } catch (const c10::Error &) {
        return false;
      }
    }
    const auto &[place, values] = choices.front();
    for (size_t i = 0; i <= rank && i < values.size(); ++i) {
      words[place] = Word(values[i]);
      if (tryRank(choices.slice(1), rank - i, words, trials))
        return true;
    }
    return false;
  }

  /// Adds to `seen` the node's sizes that the prediction changes.
  void noteSizes(size_t node) {
    const SnapshotNode &now = base.nodes[node];
    const SnapshotNode &then = resized.graph().nodes[node];
    for (size_t k = 0; k < now.shapes.size(); ++k)
      for (int64_t d = 0; d < now.shapes[k].dim(); ++d) {
        OtherSize size{now.shapes[k].size(d), then.shapes[k].size(d)};
        bool isKnown = std::ranges::any_of(seen, [&](const OtherSize &known) {
          return known.present == size.present && known.other == size.other;
        });
        if (size.present != size.other && !isKnown)
          seen.push_back(size);
      }
  }

  const GraphSnapshot &base;
  c10::ArrayRef<MarkedSize> marked;
  c10::ArrayRef<OtherSize> others; // one for each marked size
  const RequiredSizes &required;
  ResizedGraph resized;
  size_t position = 0; // of the node whose shapes are inferred
  bool isFromSeen = true;
  std::vector<OtherSize> seen;
};

/// Whether the size is the same in all traces.
bool isConstant(const GraphSnapshot &graph,
                const std::vector<TraceNumbers> &traces, uint32_t parameter,
                uint32_t dim) {
  size_t next = 0;
  for (const SnapshotNode &node : graph.nodes) {
    if (!node.record && node.parameter == parameter)
      return std::ranges::all_of(traces, [&](const TraceNumbers &trace) {
        return trace.sizes[next + dim] == traces.front().sizes[next + dim];
      });
    for (const torch::lazy::Shape &shape : node.shapes)
      next += size_t(shape.dim());
  }
  return false;
}

std::vector<MarkedSize> markedSizes(const GraphSnapshot &graph,
                                    const std::vector<TraceNumbers> &traces) {
  std::vector<MarkedSize> result;
  for (uint32_t p = 0; p < graph.parameters.size(); ++p)
    for (const SizeMark &mark : graph.parameters[p].marks) {
      int64_t size = graph.parameters[p].shape.size(mark.dim);
      if (mark.isDynamic && size > 1 && isConstant(graph, traces, p, mark.dim))
        result.push_back({p, mark.dim, size, mark});
    }
  return result;
}

/// Returns the predicted value of each marked size: a multiple, so that
/// divisions of the size stay exact, with a different factor for each distinct
/// size; if the multiple is above the marked range, a bound of the range.
/// Returns an empty vector if a range contains no other size.
std::vector<OtherSize> otherSizes(c10::ArrayRef<MarkedSize> marked,
                                  int64_t firstFactor) {
  std::vector<OtherSize> result;
  int64_t factor = firstFactor;
  for (size_t i = 0; i < marked.size(); ++i) {
    int64_t size = marked[i].present;
    auto known = std::ranges::find(result, size, &OtherSize::present);
    if (known != result.end()) {
      result.push_back(*known);
      continue;
    }
    int64_t other = size * factor;
    factor += 2;
    if (other > marked[i].mark.most)
      other = size < marked[i].mark.most
                  ? marked[i].mark.most
                  : std::max<int64_t>(marked[i].mark.least, 2);
    if (other == size)
      return {};
    result.push_back({size, other});
  }
  return result;
}

/// Predicts the numbers at other sizes. If an op rejects them because a
/// parameter has the present size, and `resizes`, tries again with another size
/// of the parameter. Throws c10::Error if the graph doesn't exist at the other
/// sizes.
TraceNumbers predictAt(const GraphSnapshot &graph,
                       c10::ArrayRef<MarkedSize> marked,
                       c10::ArrayRef<OtherSize> others, Affected affected,
                       bool fromSeen, bool resizes) {
  RequiredSizes required;
  for (;;) {
    RequiredSizes more = required;
    Prediction prediction(graph, marked, others, required);
    try {
      return prediction.run(affected, fromSeen);
    } catch (const c10::Error &) {
      if (!resizes || required.size() > kMaxRequired ||
          !prediction.addRequired(more))
        throw;
    }
    required = std::move(more);
  }
}

/// Predicts the numbers at one or two other sizes of each marked dimension.
/// Returns an empty vector if the graph doesn't exist at such sizes.
std::vector<TraceNumbers> tryToPredict(const GraphSnapshot &graph,
                                       c10::ArrayRef<MarkedSize> marked,
                                       Affected affected, bool fromSeen,
                                       bool resizes) {
  std::vector<TraceNumbers> result;
  try {
    for (int64_t factor : {2, 3}) {
      std::vector<OtherSize> others = otherSizes(marked, factor);
      if (others.empty())
        break;
      TraceNumbers numbers =
          predictAt(graph, marked, others, affected, fromSeen, resizes);
      if (std::ranges::find(result, numbers) == result.end())
        result.push_back(std::move(numbers));
    }
  } catch (const c10::Error &) {
    return {};
  }
  return result;
}

/// Returns the dimensions along which slices of varying lengths are read or
/// written, each with its size, which is the same in all traces.
std::set<std::pair<uint32_t, int64_t>>
dimsOfParts(const GraphSnapshot &graph,
            const std::vector<TraceNumbers> &traces) {
  std::set<std::pair<uint32_t, int64_t>> result;
  std::vector<size_t> firstSizes; // by node: the index of its first size
  size_t next = 0;
  for (const SnapshotNode &node : graph.nodes) {
    firstSizes.push_back(next);
    for (const torch::lazy::Shape &shape : node.shapes)
      next += size_t(shape.dim());
  }
  auto differs = [&](ResultRef ref, uint32_t dim) {
    return std::ranges::any_of(traces, [&](const TraceNumbers &trace) {
      size_t size = firstSizes[ref.position] + dim;
      return trace.sizes[size] != traces.front().sizes[size];
    });
  };
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const SnapshotNode &node = graph.nodes[i];
    const bool isRead =
        node.record && node.record->shapeRule == ShapeRule::sliceShape;
    if (!isRead && (!node.record ||
                    node.record->shapeRule != ShapeRule::slice_scatterShape))
      continue;
    ResultRef whole = graph.operands[node.firstOperand];
    ResultRef part = isRead ? ResultRef{.position = i, .index = 0}
                            : graph.operands[node.firstOperand + 1];
    if (whole.index || part.index)
      continue;
    for (uint32_t d = 0; d < graph.shape(whole).dim(); ++d)
      if (differs(part, d) && !differs(whole, d))
        result.emplace(d, graph.shape(whole).size(d));
  }
  return result;
}

std::vector<TraceNumbers> predict(const GraphSnapshot &graph,
                                  const std::vector<TraceNumbers> &traces,
                                  c10::ArrayRef<MarkedSize> marked) {
  if (marked.empty())
    return {};
  for (bool resizes : {false, true})
    for (Affected affected :
         {Affected::Marked, Affected::SameDim, Affected::AllEqual})
      for (bool fromSeen : {true, false}) {
        std::vector<TraceNumbers> result =
            tryToPredict(graph, marked, affected, fromSeen, resizes);
        std::erase_if(result, [&](const TraceNumbers &numbers) {
          return numbers.skeleton != traces.front().skeleton;
        });
        if (!result.empty())
          return result;
      }
  return {};
}

} // namespace

bool torch_ltc::hasDynamicMarks(const GraphSnapshot &graph) {
  return std::ranges::any_of(graph.parameters, [](const auto &parameter) {
    return std::ranges::any_of(parameter.marks, &SizeMark::isDynamic);
  });
}

std::vector<TraceNumbers>
torch_ltc::predictTraces(const GraphSnapshot &graph,
                         const std::vector<TraceNumbers> &traces) {
  return predict(graph, traces, markedSizes(graph, traces));
}

std::vector<TraceNumbers>
torch_ltc::predictBounds(const GraphSnapshot &graph,
                         const std::vector<TraceNumbers> &traces) {
  std::vector<MarkedSize> bounds;
  for (auto [dim, size] : dimsOfParts(graph, traces))
    for (uint32_t p = 0; p < graph.parameters.size(); ++p) {
      const SnapshotParameter &parameter = graph.parameters[p];
      if (dim < parameter.shape.dim() && parameter.shape.size(dim) == size &&
          size > 1 && !isMarkedStatic(parameter.marks, dim) &&
          isConstant(graph, traces, p, dim))
        bounds.push_back({p, dim, size, SizeMark{dim, /*isDynamic=*/true}});
    }
  return predict(graph, traces, bounds);
}
