//===- size_stand_ins.h - Stand-ins for sizes that vary ----------*- C -*-===//

#ifndef TORCH_LTC_C_SIZE_STAND_INS_H
#define TORCH_LTC_C_SIZE_STAND_INS_H

#include <stddef.h>
#include <stdint.h>

/// Number of vectors of stand-ins at which a general program is lowered: two
/// determine a linear function of a size, the third checks it.
enum { LTC_GENERAL_SAMPLES = 3 };

/// Scales of stand-ins: the first is so large that no decision is made for a
/// small size; the others are for graphs that a constant bounds (a table of 512
/// positions).
enum { LTC_STAND_IN_SCALES = 5 };

/// The value in `sample` of the symbol that is number `rank` in the order of
/// their sizes, which is the order of their stand-ins in each sample.
///
/// For each of the six lowest bits of a size, and of a size minus one, the
/// samples differ: a rounded quotient by a power of two is then determined by
/// its samples, and so is a quotient of it.
static inline int64_t ltcSizeStandIn(size_t scale, size_t rank, size_t sample) {
  static const int64_t start[LTC_STAND_IN_SCALES][LTC_GENERAL_SAMPLES] = {
      {257, 302, 353}, {57, 67, 79}, {12, 15, 19}, {5, 6, 7}, {1, 2, 3}};
  static const int64_t step[LTC_STAND_IN_SCALES][LTC_GENERAL_SAMPLES] = {
      {10, 11, 13}, {4, 5, 6}, {2, 2, 3}, {1, 1, 1}, {1, 1, 1}};
  static const int64_t rest[LTC_GENERAL_SAMPLES] = {43, 22, 52};
  return 64 * (start[scale][sample] + step[scale][sample] * (int64_t)rank) +
         rest[sample];
}

#endif // TORCH_LTC_C_SIZE_STAND_INS_H
