//===- varying_numbers.h - Numbers that differ between traces ---*- C++ -*-===//
//
// Some number arguments, such as a slice's start, an index or a shift,
// determine neither the structure of the program nor, by themselves, sizes
// (column `varies` of the op table). Such a number is a constant of the program
// until it differs from its value in an earlier trace; from then on, it is a
// dynamic scalar at this place of the trace, like a learning rate:
//
//   batch = corpus[i : i + 20]     step 1: slice_copy(start=0, end=20)
//                                  step 2: slice_copy(start=scalar, end=scalar)
//                                  step 3: the same program
//
// A number that doesn't follow from sizes (for example, a bound of `clamp`, an
// end of `linspace`, or a float that ends an `arange`) is also compared with
// its value in traces of other sizes, so that it doesn't become a constant
// again at each new size. The ends of a slice (`x[begin:end:step]`) become
// dynamic scalars for any length of the slice if both, or the step, have moved
// while the size of the sliced dimension stayed the same, which shows that the
// ends don't follow this size. (If the size differs in each trace, they may
// follow it.) The same holds for the numbers of an `arange` if its step has
// moved.
//
// A place in a trace is determined by the preceding ops, and by the call itself
// without these numbers. Making a number a dynamic scalar only affects which
// program is requested. A program with a dynamic scalar computes the same as
// one with a constant, so a wrong guess only costs a compilation; and
// everything after the tracer (hash, trace cache, tiers, captures, texts)
// treats the number as an ordinary scalar.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_TRACING_VARYING_NUMBERS_H
#define TORCH_LTC_TRACING_VARYING_NUMBERS_H

#include "ir/hash.h"
#include "tracing/argument_walk.h"

#include <torch/csrc/lazy/core/shape.h>

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

namespace torch_ltc {

class VaryingNumbers {
public:
  using Shapes = std::vector<torch::lazy::Shape>;

  static VaryingNumbers &ofThisThread();

  /// Turns the numbers that have ever differed at this place of the trace into
  /// dynamic scalars, and returns whether there are any. Must be called before
  /// each op is traced. If a number has ever changed at this place, sets
  /// `shapes` to the results' shapes, which `infer` returns. Throws what
  /// `infer` throws.
  bool parametrize(const OpRecord &record, ArgumentWalk &walk,
                   const std::function<Shapes()> &infer, Shapes &shapes);

private:
  using Numbers = c10::SmallVector<Word, 4>;

  /// A place in a trace.
  struct Place {
    Numbers numbers; // the first call's
    bool isMoving = false;
  };
  /// What is known about a place for results of certain sizes, or of any sizes.
  struct SizedPlace {
    Numbers numbers;                  // the last call's
    c10::SmallVector<bool, 4> varies; // whether each number has differed
  };
  /// A slice (`x[start:end:step]`) of a tensor of a certain size, or an
  /// `arange`.
  struct Part {
    Word start, end, step; // the last call's
    bool isMoving = false;
  };
  /// The sliced dimension at a place, whatever its size.
  struct Whole {
    int64_t size;            // the last call's
    Word start;              // the first call's
    int changes = 0;         // consecutive calls in which the size differed
    bool startMoves = false; // whether a stepped slice's start has differed
  };
  /// Whether a place is for certain sizes or for any.
  enum class Sizes : uint8_t { Constant, Any };

  void begin(uint64_t trace);
  void readOptions();
  void forget();
  Hash128 placeOf(const OpRecord &record, const ArgumentWalk &walk, Sizes sizes,
                  Numbers &numbers) const;
  const c10::SmallVector<bool, 4> *findUnsized(const OpRecord &record,
                                               const ArgumentWalk &walk);
  bool isMovingPart(const OpRecord &record, const ArgumentWalk &walk,
                    const Numbers &numbers);
  bool isMovingRange(const OpRecord &record, const Numbers &numbers);
  bool compare(const OpRecord &record, const ArgumentWalk &walk, Sizes sizes,
               SizedPlace &place, const Numbers &numbers);

  uint64_t trace = 0;
  std::optional<uint64_t> options; // version of the configuration read
  bool isOn = false;
  uint64_t opsBefore = 0; // hash of the trace's ops so far
  std::unordered_map<Hash128, Place, Hash128Hasher> places;
  std::unordered_map<Hash128, SizedPlace, Hash128Hasher> sizedPlaces;
  std::unordered_map<Hash128, SizedPlace, Hash128Hasher> unsizedPlaces;
  std::unordered_map<Hash128, Part, Hash128Hasher> parts;
  std::unordered_map<Hash128, Whole, Hash128Hasher> wholes;
};

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_VARYING_NUMBERS_H
