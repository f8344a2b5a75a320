//===- NumberFitter.h - Expressions of numbers over sizes -------*- C++ -*-===//
//
// A general program is lowered at several vectors of stand-ins for the sizes
// that vary. A number that differs between the lowered programs is a function
// of the sizes; this class finds that function.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CODEGEN_NUMBERFITTER_H
#define TORCH_LTC_CODEGEN_NUMBERFITTER_H

#include "torch_ltc/Codegen/CompileLinalgModule.h"

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace mlir::torch_ltc {

/// Postfix code of `Number` in executable.proto.
using NumberCode = std::vector<int64_t>;

/// Two codes with equal values in all samples. `own` is the right one for other
/// sizes.
struct CodeReplacement {
  NumberCode shared, own;
};

/// The blocks into which a kernel splits an axis.
struct KernelBlocks {
  SizeSamples count; ///< the number of blocks in each sample
  NumberCode code;   ///< of `count`
  /// What to replace in the codes of the kernel's numbers, if anything: the
  /// number of blocks equals that of another size in all samples.
  std::optional<CodeReplacement> replacement;
};

/// Replaces `shared` in a code by `own`. Returns whether the code contains it.
bool replaceCode(NumberCode &code, const CodeReplacement &replacement);

/// Returns text for an error: "3, 4, 7 and 6 at the stand-ins, which is no
/// known function of them".
std::string unknownNumber(const SizeSamples &number);
std::string unknownNumber(const FloatSamples &number);

/// Finds expressions for numbers. Add all sizes, traced numbers and blocks
/// first; after that, the other members are thread-safe.
class NumberFitter {
public:
  /// `standIns[i]`: the values of symbol `i` in the samples.
  explicit NumberFitter(llvm::ArrayRef<SizeSamples> standIns);

  /// Adds the size of a tensor, so that products with it are found. Needed for
  /// sizes that are sums or quotients of symbols.
  void addSize(const SizeSamples &size);
  /// Adds number `index` of the traced program. It needs no expression, because
  /// each binding gets its value from the trace.
  void addTraced(const SizeSamples &number, unsigned index);
  /// Adds the number of blocks of `block` elements in `size`. If it equals that
  /// of another size in all samples, the codes that `fit` returns contain the
  /// other size's number of blocks, and the result has a replacement. Returns
  /// nullopt if the size doesn't vary or has no known expression.
  std::optional<KernelBlocks> addBlocks(const SizeSamples &size, int64_t block);
  /// Adds a pair of numbers that are equal in all samples, but may differ for
  /// other sizes. Binding must check that they are equal.
  void assumeEqual(CodeReplacement pair) {
    equalNumbers.push_back(std::move(pair));
  }
  llvm::ArrayRef<CodeReplacement> assumedEqual() const { return equalNumbers; }

  /// Returns the code of a number that differs between the samples, or nullopt
  /// if no known expression has these values.
  std::optional<NumberCode> fit(const SizeSamples &number);
  /// Returns the code of a float of `bits` (32 or 64) bits that differs between
  /// the samples: an integer expression or a quotient.
  std::optional<NumberCode> fitFloat(const FloatSamples &number,
                                     unsigned bits) const;
  /// Like `fit`, but falls back to an approximation. To be used for numbers
  /// that affect only speed.
  std::optional<NumberCode> fitEstimate(const SizeSamples &number);

private:
  /// A known size.
  struct Base {
    SizeSamples values;
    NumberCode code;
    bool isBlocks = false; ///< a number of blocks
  };
  /// A product of bases.
  struct Monomial {
    SizeSamples values;
    llvm::SmallVector<unsigned, 4> factors;
  };

  void addBase(const SizeSamples &values, NumberCode code,
               bool isBlocks = false);
  bool hasBlocks(const Monomial &monomial) const;
  std::optional<NumberCode> fitRounded(const FloatSamples &number,
                                       unsigned bits) const;
  std::optional<NumberCode> fitFraction(const FloatSamples &number,
                                        unsigned bits) const;
  std::optional<NumberCode> fitRatio(const FloatSamples &number,
                                     unsigned bits) const;
  std::optional<NumberCode> multipleOf(const Monomial &monomial,
                                       const SizeSamples &number) const;
  std::optional<NumberCode> fitProduct(const SizeSamples &number) const;
  void assumeEqualBlocks(const SizeSamples &number);
  std::optional<NumberCode> fitNested(const SizeSamples &number,
                                      unsigned depth) const;
  std::optional<NumberCode> fitLinear(const SizeSamples &number) const;
  std::optional<NumberCode> fitSum(const SizeSamples &number) const;
  std::optional<NumberCode> fitMultipleOfSum(const SizeSamples &number) const;
  std::optional<NumberCode> fitQuotient(const SizeSamples &number) const;
  std::optional<NumberCode> fitWindow(const SizeSamples &number,
                                      const Base &base, int64_t divisor) const;
  NumberCode codeOf(const Monomial &monomial) const;
  /// The products of at most two bases.
  llvm::ArrayRef<Monomial> smallMonomials() const;

  unsigned numSymbols;
  llvm::SmallVector<Base> bases;
  /// Traced numbers that are 0 in a sample, such as the padding of images of
  /// even or odd sizes. No other number is a product of these.
  std::map<SizeSamples, NumberCode> numbersWithZeros;
  std::vector<CodeReplacement> equalNumbers;
  std::vector<Monomial> monomials; ///< by degree
  std::map<SizeSamples, std::optional<NumberCode>> known;
  std::mutex mutex; ///< protects `known`
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CODEGEN_NUMBERFITTER_H
