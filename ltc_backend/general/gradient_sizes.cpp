//===- gradient_sizes.cpp - Sizes of gradients of windows -----------------===//

#include "general/gradient_sizes.h"

#include "general/size_sources.h"

#include <algorithm>
#include <string_view>
#include <tuple>

using namespace torch_ltc;

namespace {

/// A number of a trace: that of a slot, or a constant.
struct Number {
  std::optional<uint32_t> slot;
  int64_t constant = 0;
};

class GradientSizeFinder {
public:
  GradientSizeFinder(const GraphSnapshot &base, const TraceColumns &columns,
                     c10::ArrayRef<NumberSlot> slots)
      : base(base), columns(columns), slots(slots) {}

  std::vector<GradientSize> run() {
    for (position = uint32_t(base.nodes.size()); position-- > 0;)
      if (base.nodes[position].record)
        addNode();
    return std::move(found);
  }

private:
  const SnapshotNode &node() const { return base.nodes[position]; }
  ResultRef operand(uint32_t i) const {
    return base.operands[node().firstOperand + i];
  }

  void addNode() {
    switch (node().record->shapeRule) {
    case ShapeRule::convolution_backwardShape:
      return addConvolution();
    case ShapeRule::avg_pool2d_backwardShape:
    case ShapeRule::max_pool2d_backwardShape:
      return addPool();
    case ShapeRule::unfold_backwardShape:
      return addUnfold();
    default:
      if (isPad())
        addPad();
    }
  }

  /// Whether the op is the gradient of a padding that repeats values of the
  /// input: its gradient has the input's shape.
  bool isPad() const {
    return node().numOperands == 2 && node().record->repeatsEdges &&
           node().shapes[0].sizes() == base.shape(operand(1)).sizes() &&
           node().shapes[0].sizes() != base.shape(operand(0)).sizes();
  }

  /// The spatial dimensions of the gradient, as indices of a list argument.
  template <typename F> void forEachWindowDim(size_t first, F visit) {
    for (size_t d = first; d < size_t(base.shape(operand(0)).dim()); ++d)
      visit(uint32_t(d), d - first);
  }

  void addConvolution() {
    const bool isTransposed = flag("transposed");
    forEachWindowDim(2, [&](uint32_t dim, size_t i) {
      start(dim);
      std::optional<Number> input = sizeOf(operand(1), dim),
                            kernel = sizeOf(operand(2), dim);
      const Number stride = argument("stride", i),
                   padding = argument("padding", i),
                   dilation = argument("dilation", i);
      if (!input || !kernel)
        return;
      if (!isTransposed) {
        addWindows(*input, *kernel, padding, dilation);
        size.whole = {operand(1), dim};
        return divide(stride);
      }
      add(1, *input, stride);
      add(-1, stride);
      add(-2, padding);
      add(1, dilation, *kernel);
      add(-1, dilation);
      add(1, argument("output_padding", i));
      size.constant += 1;
      finish();
    });
  }

  void addPool() {
    forEachWindowDim(base.shape(operand(0)).dim() - 2, [&](uint32_t dim,
                                                           size_t i) {
      start(dim);
      std::optional<Number> input = sizeOf(operand(1), dim);
      if (!input)
        return;
      const Number kernel = argument("kernel_size", i);
      const Number stride = isEmpty("stride") ? kernel : argument("stride", i);
      addWindows(*input, kernel, argument("padding", i),
                 hasArgument("dilation") ? argument("dilation", i) : one());
      if (flag("ceil_mode")) {
        add(1, stride);
        size.constant -= 1;
      }
      size.whole = {operand(1), dim};
      divide(stride);
    });
  }

  void addUnfold() {
    const int64_t rank = node().shapes[0].dim(),
                  dim = attributeOf("dim")->integer();
    const auto place = uint32_t(dim < 0 ? dim + rank : dim);
    start(place);
    addWindows(argument("input_sizes", place), argument("size"), zero(), one());
    divide(argument("step"));
  }

  void addPad() {
    const size_t rank = base.shape(operand(0)).dim();
    const size_t numDims = attributeOf("padding")->count / 2;
    if (numDims > rank)
      return;
    forEachWindowDim(rank - numDims, [&](uint32_t dim, size_t i) {
      start(dim);
      std::optional<Number> input = sizeOf(operand(1), dim);
      if (!input)
        return;
      const size_t place = 2 * (numDims - 1 - i);
      add(1, *input);
      add(1, argument("padding", place));
      add(1, argument("padding", place + 1));
      size.whole = {operand(1), dim};
      finish();
    });
  }

  /// Adds the distance between the first and the last window.
  void addWindows(Number input, Number kernel, Number padding,
                  Number dilation) {
    add(1, input);
    add(2, padding);
    add(-1, dilation, kernel);
    add(1, dilation);
    size.constant -= 1;
  }

  void divide(Number stride) {
    size.divisorSlot = stride.slot;
    size.divisor = stride.constant;
    size.offset = 1;
    finish();
  }

  /// Begins with the size of the gradient's dimension `dim`.
  void start(uint32_t dim) {
    size = {};
    size.values = columns.sizes(columns.firstSize(operand(0)) + dim);
  }

  void add(int64_t factor, Number a, Number b = one()) {
    GradientSize::Summand summand{.factor = factor, .slots = {}};
    for (Number number : {a, b})
      if (number.slot)
        summand.slots.push_back(*number.slot);
      else
        summand.factor *= number.constant;
    if (summand.slots.empty())
      size.constant += summand.factor;
    else if (summand.factor)
      size.sum.push_back(std::move(summand));
  }

  /// Keeps the size if the relation holds in all traces.
  void finish() {
    for (size_t trace = 0; trace < size.values.size(); ++trace)
      if (valueIn(trace) != size.values[trace])
        return;
    found.push_back(size);
  }

  std::optional<int64_t> valueIn(size_t trace) const {
    int64_t sum = size.constant;
    for (const GradientSize::Summand &summand : size.sum) {
      int64_t product = summand.factor;
      for (uint32_t slot : summand.slots)
        product *= numberIn(slot, trace);
      sum += product;
    }
    const int64_t divisor =
        size.divisorSlot ? numberIn(*size.divisorSlot, trace) : size.divisor;
    if (sum < 0 || divisor <= 0)
      return std::nullopt;
    return sum / divisor + size.offset;
  }

  int64_t numberIn(uint32_t slot, size_t trace) const {
    return numbersOf(columns, slots[slot])[trace];
  }

  static Number one() { return {.slot = std::nullopt, .constant = 1}; }
  static Number zero() { return {}; }

  /// Returns the parameter's size from which dimension `dim` of `ref` gets its
  /// size; none if the size varies and doesn't come from a parameter.
  std::optional<Number> sizeOf(ResultRef ref, uint32_t dim) const {
    const uint32_t size = columns.firstSize(ref) + dim;
    const Number constant{.slot = std::nullopt,
                          .constant = columns.sizes(size).front()};
    while (base.nodes[ref.position].record) {
      auto source = sourceOfSize(base, ref, dim);
      if (!source)
        break;
      std::tie(ref, dim) = *source;
    }
    const uint32_t index = columns.firstSize(ref) + dim;
    for (uint32_t i = 0; i < slots.size(); ++i)
      if (slots[i].kind == NumberSlot::Kind::ParameterSize &&
          slots[i].index == index &&
          columns.sizes(index) == columns.sizes(size))
        return Number{.slot = i};
    return columns.varies(size) ? std::nullopt : std::optional(constant);
  }

  std::optional<Attribute> attributeOf(std::string_view name) const {
    return findAttribute(*node().record, node().attributes->words, name);
  }

  bool hasArgument(std::string_view name) const {
    return attributeOf(name).has_value();
  }
  bool flag(std::string_view name) const {
    return attributeOf(name)->boolean();
  }
  bool isEmpty(std::string_view name) const {
    return attributeOf(name)->count == 0;
  }

  /// Returns an integer, or integer `i` of a list. A list of one integer
  /// applies to all dimensions.
  Number argument(std::string_view name, size_t i = 0) const {
    const Attribute list = *attributeOf(name);
    const size_t count = list.tag == Tag::integers ? list.count : 1;
    const Word *word = list.payload + std::min(i, count - 1);
    const auto place = uint32_t(word - node().attributes->words.data());
    for (uint32_t slot = 0; slot < slots.size(); ++slot)
      if (slots[slot].node == position && slots[slot].place == place &&
          slots[slot].kind == NumberSlot::Kind::Integer)
        return {.slot = slot};
    return {.slot = std::nullopt, .constant = *word};
  }

  const GraphSnapshot &base;
  const TraceColumns &columns;
  c10::ArrayRef<NumberSlot> slots;
  uint32_t position = 0; // of the present node
  GradientSize size;     // the present one
  std::vector<GradientSize> found;
};

/// Makes the expression of a sum from expressions with two terms each.
class SumOfTerms {
public:
  SumOfTerms(c10::ArrayRef<NumberSlot> slots,
             std::vector<SizeExpression> &derived)
      : slots(slots), derived(derived) {}

  SizeExpression take(const GradientSize &size) {
    total = SizeExpression::constant(size.constant);
    for (const GradientSize::Summand &summand : size.sum)
      add(product(summand));
    SizeExpression divisor = size.divisorSlot
                                 ? slots[*size.divisorSlot].value
                                 : SizeExpression::constant(size.divisor);
    if (!total.isConstant() && !(divisor.isConstant() && divisor.offset == 1)) {
      total = SizeExpression::of(term(total));
      if (divisor.isConstant())
        total.divisor = divisor.offset;
      else
        total.quotient = term(divisor);
    }
    total.offset += size.offset;
    return total;
  }

private:
  SizeTerm term(const SizeExpression &value) {
    if (value.isTerm())
      return value.product[0];
    derived.push_back(value);
    return {.kind = SizeTerm::Kind::Derived,
            .index = uint32_t(derived.size() - 1)};
  }

  SizeExpression product(const GradientSize::Summand &summand) {
    SizeExpression result;
    result.factor = summand.factor;
    for (uint32_t slot : summand.slots)
      if (const SizeExpression &value = slots[slot].value; value.isConstant())
        result.factor *= value.offset;
      else
        result.product.push_back(term(value));
    return result.product.empty() ? SizeExpression::constant(result.factor)
                                  : result;
  }

  void add(SizeExpression summand) {
    if (total.isConstant()) {
      summand.offset += total.offset;
      total = summand;
      return;
    }
    if (summand.isConstant()) {
      total.offset += summand.offset;
      return;
    }
    if (total.addend)
      total = SizeExpression::of(term(total));
    total.sign = summand.factor < 0 ? -1 : 1;
    summand.factor *= total.sign;
    total.addend = term(summand);
  }

  c10::ArrayRef<NumberSlot> slots;
  std::vector<SizeExpression> &derived;
  SizeExpression total;
};

} // namespace

bool GradientSize::varies() const {
  auto [least, most] = std::ranges::minmax(values);
  return least != most;
}

c10::SmallVector<uint32_t, 8> GradientSize::slots() const {
  c10::SmallVector<uint32_t, 8> result;
  for (const Summand &summand : sum)
    result.append(summand.slots.begin(), summand.slots.end());
  if (divisorSlot)
    result.push_back(*divisorSlot);
  return result;
}

std::vector<GradientSize>
torch_ltc::findGradientSizes(const GraphSnapshot &base,
                             const TraceColumns &columns,
                             c10::ArrayRef<NumberSlot> slots) {
  return GradientSizeFinder(base, columns, slots).run();
}

SizeExpression torch_ltc::expressionOf(const GradientSize &size,
                                       c10::ArrayRef<NumberSlot> slots,
                                       std::vector<SizeExpression> &derived) {
  return SumOfTerms(slots, derived).take(size);
}
