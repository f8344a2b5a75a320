//===- size_marks.h - Sizes that the user has marked ------------*- C++ -*-===//
//
// Marks made by torch_ltc.mark_dynamic and mark_static.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_MEMORY_SIZE_MARKS_H
#define TORCH_LTC_MEMORY_SIZE_MARKS_H

#include <cstdint>
#include <limits>
#include <vector>

namespace torch_ltc {

/// The mark of one dimension of a value.
struct SizeMark {
  uint32_t dim;
  /// Whether the size will vary: if so, the first program that reads the value
  /// is compiled for all sizes. Otherwise each size has a separate program.
  bool isDynamic;
  /// The range of a dynamic size.
  int64_t least = 0;
  int64_t most = std::numeric_limits<int64_t>::max();
};
using SizeMarks = std::vector<SizeMark>;

/// Adds `mark`, or replaces the mark of the same dimension. As in TorchDynamo,
/// a static mark doesn't replace a dynamic one.
inline void addMark(SizeMarks &marks, const SizeMark &mark) {
  for (SizeMark &known : marks)
    if (known.dim == mark.dim) {
      if (mark.isDynamic || !known.isDynamic)
        known = mark;
      return;
    }
  marks.push_back(mark);
}

inline bool isMarkedStatic(const SizeMarks &marks, uint32_t dim) {
  for (const SizeMark &mark : marks)
    if (mark.dim == dim)
      return !mark.isDynamic;
  return false;
}

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_SIZE_MARKS_H
