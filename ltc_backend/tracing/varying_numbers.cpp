//===- varying_numbers.cpp - Numbers that differ between traces -----------===//

#include "tracing/varying_numbers.h"

#include "compilation/external_backend.h"
#include "config/config.h"
#include "events/step_log.h"
#include "execution/recording.h"
#include "graph/trace_cache.h"
#include "source/source_location.h"

using namespace torch_ltc;

namespace {

// Maximum number of places per thread; each takes a few hundred bytes.
constexpr size_t kMaxKnownPlaces = 32768;

bool isNumber(Tag tag) {
  return tag == Tag::integer || tag == Tag::floating || tag == Tag::integers;
}

size_t numWords(const Attribute &attribute) {
  return attribute.tag == Tag::integers ? attribute.count : 1;
}

void addShape(HashState &state, const torch::lazy::Shape &shape,
              bool withSizes = true) {
  state.add(uint64_t(shape.scalar_type()) << 8 | uint64_t(shape.dim()));
  if (withSizes)
    for (int64_t size : shape.sizes())
      state.add(uint64_t(size));
}

/// Rewrites a call's words and scalars.
class Rewriter {
public:
  explicit Rewriter(ArgumentWalk &walk) : walk(walk) {}

  void keep(const Attribute &attribute, c10::ArrayRef<Word> all) {
    words.append(all.begin(), all.end());
    size_t count = attribute.tag == Tag::dynamicIntegers ? attribute.count
                   : attribute.tag == Tag::dynamicInt ||
                           attribute.tag == Tag::dynamicFloat ||
                           attribute.tag == Tag::numberTensor
                       ? 1
                       : 0;
    for (size_t i = 0; i < count; ++i)
      scalars.push_back(walk.scalars[next++]);
  }

  void makeParameter(const Attribute &attribute) {
    AttributeWriter writer;
    if (attribute.tag == Tag::floating) {
      writer.header(Tag::dynamicFloat);
      scalars.push_back(DynamicScalar::of(attribute.floating()));
    } else if (attribute.tag == Tag::integer) {
      writer.header(Tag::dynamicInt);
      scalars.push_back(DynamicScalar::of(attribute.integer()));
    } else {
      writer.header(Tag::dynamicIntegers, attribute.count);
      for (int64_t number : attribute.integers())
        scalars.push_back(DynamicScalar::of(number));
    }
    words.append(writer.words.begin(), writer.words.end());
  }

  void finish() {
    walk.attributes.words = std::move(words);
    walk.scalars = std::move(scalars);
  }

private:
  ArgumentWalk &walk;
  size_t next = 0; // the index of the walk's next scalar
  c10::SmallVector<Word, 32> words;
  c10::SmallVector<DynamicScalar, 2> scalars;
};

void makeParameters(const OpRecord &record, ArgumentWalk &walk,
                    c10::ArrayRef<bool> varies) {
  Rewriter rewriter(walk);
  c10::ArrayRef<Word> words = walk.attributes.words;
  AttributeReader reader(words);
  size_t number = 0;
  const Word *begin = words.begin();
  for (const ArgumentSpec &spec : record.arguments) {
    Attribute attribute = reader.next();
    bool isParameter = false;
    if (spec.varies && isNumber(attribute.tag))
      for (size_t i = 0; i < numWords(attribute); ++i)
        isParameter |= varies[number++];
    const Word *end = reader.current();
    if (isParameter)
      rewriter.makeParameter(attribute);
    else
      rewriter.keep(attribute, {begin, end});
    begin = end;
  }
  rewriter.finish();
}

} // namespace

VaryingNumbers &VaryingNumbers::ofThisThread() {
  thread_local VaryingNumbers numbers;
  return numbers;
}

void VaryingNumbers::begin(uint64_t number) {
  trace = number;
  opsBefore = 0;
  if (places.size() + sizedPlaces.size() + unsizedPlaces.size() + parts.size() >
      kMaxKnownPlaces)
    forget();
}

void VaryingNumbers::readOptions() {
  options = configVersion();
  // External backends need not support numbers that are dynamic scalars.
  isOn = config().varying_numbers.get() == "auto" && !selectedBackend();
  if (!isOn)
    forget();
}

void VaryingNumbers::forget() {
  places.clear();
  sizedPlaces.clear();
  unsizedPlaces.clear();
  parts.clear();
  wholes.clear();
}

/// Returns a hash of the preceding ops and of the call. The hash excludes
/// numbers that may vary, which are added to `numbers`, and, for `Sizes::Any`,
/// sizes.
Hash128 VaryingNumbers::placeOf(const OpRecord &record,
                                const ArgumentWalk &walk, Sizes sizes,
                                Numbers &numbers) const {
  bool withSizes = sizes == Sizes::Constant;
  HashState state(withSizes ? 8 : 12);
  state.add(opsBefore);
  state.add(record.id);
  c10::ArrayRef<Word> words = walk.attributes.words;
  AttributeReader reader(words);
  for (const ArgumentSpec &spec : record.arguments) {
    const Word *begin = reader.current();
    Attribute attribute = reader.next();
    if (spec.varies && isNumber(attribute.tag)) {
      state.add(uint64_t(*begin)); // tag and count
      numbers.append(attribute.payload,
                     attribute.payload + numWords(attribute));
      continue;
    }
    if (!withSizes && spec.followsSizes && isNumber(attribute.tag)) {
      state.add(uint64_t(*begin));
      continue;
    }
    for (const Word *word = begin; word != reader.current(); ++word)
      state.add(uint64_t(*word));
  }
  for (const torch::lazy::Value &operand : walk.operands)
    addShape(state, operand.shape(), withSizes);
  return state.finish();
}

namespace {
/// What a slice consists of.
struct SlicedDim {
  int64_t dim, size, step;
};
} // namespace

/// Returns the dimension that the op slices; nullopt if the op doesn't read or
/// write a slice.
static std::optional<SlicedDim> slicedDim(const OpRecord &record,
                                          const ArgumentWalk &walk) {
  switch (record.shapeRule) {
  case ShapeRule::sliceShape:
  case ShapeRule::slice_scatterShape:
  case ShapeRule::slice_backwardShape:
    break;
  default:
    return std::nullopt;
  }
  c10::ArrayRef<int64_t> whole;
  if (record.shapeRule != ShapeRule::slice_backwardShape)
    whole = walk.operands[0].shape().sizes();
  int64_t dim = 0, step = 0;
  AttributeReader reader(walk.attributes.words);
  for (const ArgumentSpec &spec : record.arguments) {
    Attribute attribute = reader.next();
    if (attribute.tag == Tag::integers && spec.name == "input_sizes")
      whole = attribute.integers();
    else if (attribute.tag == Tag::integer && spec.name == "dim")
      dim = attribute.integer();
    else if (attribute.tag == Tag::integer && spec.name == "step")
      step = attribute.integer();
  }
  dim += dim < 0 ? int64_t(whole.size()) : 0;
  if (dim < 0 || dim >= int64_t(whole.size()))
    return std::nullopt;
  return SlicedDim{dim, whole[dim], step};
}

/// Whether the start or the step of this `arange` has differed from that of an
/// earlier trace, of any length. If the step has, the length isn't a simple
/// function of the numbers. If the start has, the range is a position that
/// moves, as in `arange(past, past + length)`.
bool VaryingNumbers::isMovingRange(const OpRecord &record,
                                   const Numbers &numbers) {
  if (record.shapeRule != ShapeRule::arangeShape || numbers.size() < 2 ||
      config().varying_sizes.get() == "off")
    return false;
  HashState state(14);
  state.add(opsBefore);
  state.add(record.id);
  Part now{numbers[0], numbers[1], numbers.size() > 2 ? numbers[2] : 1};
  Part &last = parts.try_emplace(state.finish(), now).first->second;
  now.isMoving =
      last.isMoving || now.step != last.step || now.start != last.start;
  last = now;
  return now.isMoving;
}

/// Whether both ends of this slice, one end of a slice with a step above 1, or
/// the step have differed from those of an earlier trace in which the sliced
/// dimension had the same size. If that size changes in each trace, only the
/// start of a slice with a step above 1 counts, because the ends of other
/// slices may follow from the size.
bool VaryingNumbers::isMovingPart(const OpRecord &record,
                                  const ArgumentWalk &walk,
                                  const Numbers &numbers) {
  if (numbers.size() != 2 || config().varying_sizes.get() == "off")
    return false;
  auto sliced = slicedDim(record, walk);
  if (!sliced)
    return false;
  auto [dim, size, step] = *sliced;
  HashState state(13);
  state.add(opsBefore);
  state.add(record.id);
  state.add(uint64_t(dim));
  // With a step above 1, the length isn't a simple function of one end.
  const bool isStepped = step > 1;
  state.add(isStepped);
  Whole first{.size = size, .start = numbers[0]};
  Whole &whole = wholes.try_emplace(state.finish(), first).first->second;
  whole.changes = whole.size == size ? 0 : whole.changes + 1;
  whole.size = size;
  whole.startMoves |= isStepped && whole.start != numbers[0];
  state.add(uint64_t(size));
  Part now{numbers[0], numbers[1], step};
  Part &last = parts.try_emplace(state.finish(), now).first->second;
  const bool startMoved = now.start != last.start,
             endMoved = now.end != last.end;
  now.isMoving = last.isMoving || now.step != last.step ||
                 (isStepped ? startMoved || endMoved : startMoved && endMoved);
  last = now;
  return whole.startMoves || (now.isMoving && whole.changes < 2);
}

/// Logs which number varies; it is a dynamic scalar from now on.
static void noteParameter(const OpRecord &record, const ArgumentWalk &walk,
                          size_t number) {
  AttributeReader reader(walk.attributes.words);
  size_t first = 0;
  for (const ArgumentSpec &spec : record.arguments) {
    Attribute attribute = reader.next();
    if (!spec.varies || !isNumber(attribute.tag))
      continue;
    first += numWords(attribute);
    if (number < first)
      return noteVaryingNumber(spec.name + " of " + record.name +
                               messageSuffix(captureLocation()));
  }
}

/// Updates `place`, and returns whether one of the numbers varies. For
/// `Sizes::Any`, only numbers that don't follow sizes count. Floats never do.
bool VaryingNumbers::compare(const OpRecord &record, const ArgumentWalk &walk,
                             Sizes sizes, SizedPlace &place,
                             const Numbers &numbers) {
  bool any = false;
  size_t i = 0;
  AttributeReader reader(walk.attributes.words);
  for (const ArgumentSpec &spec : record.arguments) {
    Attribute attribute = reader.next();
    if (!spec.varies || !isNumber(attribute.tag))
      continue;
    for (size_t end = i + numWords(attribute); i < end; ++i) {
      if (sizes == Sizes::Any && spec.followsSizes &&
          attribute.tag != Tag::floating)
        continue;
      if (!place.varies[i] && numbers[i] != place.numbers[i]) {
        place.varies[i] = true;
        noteParameter(record, walk, i);
      }
      any |= place.varies[i];
    }
  }
  place.numbers = numbers;
  return any;
}

/// Returns a flag for each number: whether it doesn't follow from sizes and has
/// differed between traces, even if these had different sizes. Returns null if
/// no flag is set.
const c10::SmallVector<bool, 4> *
VaryingNumbers::findUnsized(const OpRecord &record, const ArgumentWalk &walk) {
  if (!record.hasUnsizedNumbers || config().varying_sizes.get() == "off")
    return nullptr;
  Numbers numbers;
  Hash128 place = placeOf(record, walk, Sizes::Any, numbers);
  if (numbers.empty())
    return nullptr;
  auto [known, isNew] =
      unsizedPlaces.try_emplace(place, SizedPlace{numbers, {}});
  if (isNew)
    known->second.varies.resize(numbers.size(), false);
  return compare(record, walk, Sizes::Any, known->second, numbers)
             ? &known->second.varies
             : nullptr;
}

bool VaryingNumbers::parametrize(const OpRecord &record, ArgumentWalk &walk,
                                 const std::function<Shapes()> &infer,
                                 Shapes &shapes) {
  uint64_t number = TraceCache::ofThisThread().number();
  if (number != trace)
    begin(number);
  if (options != configVersion())
    readOptions();
  if (!isOn)
    return false;
  Numbers numbers;
  Hash128 place{};
  if (record.hasVaryingNumbers)
    place = placeOf(record, walk, Sizes::Constant, numbers);
  auto *unsized = findUnsized(record, walk);
  const bool isPart =
      isMovingPart(record, walk, numbers) || isMovingRange(record, numbers);
  opsBefore = HashState(opsBefore ^ record.id).finish().low;
  // Keeps the numbers while a capture records, because a recorded call is
  // replayed with its original numbers.
  const Recording *recording = Recording::current();
  if (numbers.empty() || (recording && !recording->numbersVary))
    return false;

  auto [known, isNew] = places.try_emplace(place, Place{numbers});
  if (!unsized && !isPart && !isNew && !known->second.isMoving &&
      known->second.numbers == numbers)
    return false;
  known->second.isMoving |= !isNew && known->second.numbers != numbers;
  shapes = infer();
  HashState state(9);
  state.add(place);
  for (const torch::lazy::Shape &shape : shapes)
    addShape(state, shape);
  auto [sized, isFirst] =
      sizedPlaces.try_emplace(state.finish(), SizedPlace{numbers, {}});
  if (isFirst)
    sized->second.varies.resize(numbers.size(), false);
  bool any = compare(record, walk, Sizes::Constant, sized->second, numbers);
  if (!any && !unsized && !isPart)
    return false;
  c10::SmallVector<bool, 4> varies = sized->second.varies;
  if (isPart)
    varies.assign(varies.size(), true);
  for (size_t i = 0; unsized && i < varies.size(); ++i)
    varies[i] |= (*unsized)[i];
  makeParameters(record, walk, varies);
  return true;
}
