//===- size_marks.h - Sizes that users say something about ------*- C++ -*-===//
//
// torch_ltc.mark_dynamic and mark_static.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_MEMORY_SIZE_MARKS_H
#define TORCH_LTC_MEMORY_SIZE_MARKS_H

#include <cstdint>
#include <limits>
#include <vector>

namespace torch_ltc {

/// One dimension of a value.
struct SizeMark {
  uint32_t dim;
  /// The size will differ: its first program is one for all sizes. Otherwise
  /// each size has a program of its own.
  bool isDynamic;
  /// The range of a dynamic size.
  int64_t least = 0;
  int64_t most = std::numeric_limits<int64_t>::max();
};
using SizeMarks = std::vector<SizeMark>;

/// A static mark doesn't replace a dynamic one, as in TorchDynamo.
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
