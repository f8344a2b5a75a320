//===- NumberFitter.h - Expressions of numbers over sizes -------*- C++ -*-===//
//
// A general program is lowered at several vectors of stand-ins for the sizes
// that vary. A number of the lowered program that differs between them is a
// function of the sizes; this class finds it.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_LIB_CODEGEN_NUMBERFITTER_H
#define TORCH_LTC_LIB_CODEGEN_NUMBERFITTER_H

#include "torch_ltc/Codegen/CompileLinalgModule.h"

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace mlir::torch_ltc {

/// One number, as it is in each lowered program.
using Sample = std::array<int64_t, kNumSamples>;

/// Postfix code of `Number` in executable.proto.
using NumberCode = std::vector<int64_t>;

/// Thread-safe once all sizes and blocks are known.
class NumberFitter {
public:
  /// `standIns` has the values of each symbol.
  explicit NumberFitter(llvm::ArrayRef<Sample> standIns);

  /// Makes the size of a tensor known, so that products of it are found. Sizes
  /// that are sums or quotients of symbols need that.
  void addSize(const Sample &size);
  /// Makes known that `size` is processed in blocks of `block`.
  void addBlocks(const Sample &size, int64_t block);

  /// Code for a number that differs between the samples, or nothing.
  std::optional<NumberCode> fit(const Sample &number);
  /// The same for a float, given as doubles: an integer expression or the
  /// quotient of a constant and one, rounded to `bits` (32 or 64) bits.
  std::optional<NumberCode> fitFloat(const std::array<double, kNumSamples> &,
                                     unsigned bits);
  /// Like `fit` for a number that only has to be about right: an estimate.
  std::optional<NumberCode> fitEstimate(const Sample &number);

private:
  /// A known size.
  struct Base {
    Sample values;
    NumberCode code;
  };
  /// A product of bases.
  struct Monomial {
    Sample values;
    llvm::SmallVector<unsigned, 4> factors;
  };

  void addBase(const Sample &values, NumberCode code);
  std::optional<NumberCode> fitProduct(const Sample &number) const;
  std::optional<NumberCode> fitLinear(const Sample &number) const;
  std::optional<NumberCode> fitSum(const Sample &number) const;
  std::optional<NumberCode> fitQuotient(const Sample &number) const;
  std::optional<NumberCode> fitWindow(const Sample &number, const Base &base,
                                      int64_t divisor) const;
  NumberCode codeOf(const Monomial &monomial) const;

  llvm::SmallVector<Base> bases;
  std::vector<Monomial> monomials; ///< by degree
  std::map<Sample, std::optional<NumberCode>> known;
  std::mutex mutex; ///< of `known`
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CODEGEN_NUMBERFITTER_H
