//===- size_stand_ins.h - Stand-ins for sizes that vary ----------*- C -*-===//

#ifndef TORCH_LTC_C_SIZE_STAND_INS_H
#define TORCH_LTC_C_SIZE_STAND_INS_H

#include <stddef.h>
#include <stdint.h>

/// Number of vectors of stand-ins at which a general program is lowered: two
/// determine a linear function of a size, three also a rounded quotient or a
/// sum, and the last one checks the function.
enum { LTC_GENERAL_SAMPLES = 4 };

/// Scales of stand-ins. The first five are so large that no pass makes a
/// decision for small sizes. At the second scale, for graphs in which a size is
/// the remainder of another size, each stand-in is more than twice the
/// preceding one, and therefore larger than the sum of all smaller stand-ins.
/// The third scale is for graphs in which a size is a small part of another
/// one, such as the number of frames of a signal. The third and fourth scales
/// are also for sizes that exceed the stand-ins of the preceding scales. At the
/// fifth scale, for slices with a step whose length isn't a function of the
/// sliced size, each stand-in is more than eight times the preceding one. The
/// other scales are for graphs in which a constant bounds the sizes (for
/// example, a table of 512 positions).
enum {
  LTC_LARGE_STAND_INS = 0,
  LTC_SPREAD_STAND_INS = 1,
  LTC_HUGE_STAND_INS = 2,
  LTC_VAST_STAND_INS = 3,
  LTC_STEEP_STAND_INS = 4,
  LTC_STAND_IN_SCALES = 10
};

/// Sizes below this may be lowered differently: for example, a sum of so few
/// elements is computed where it is used.
enum { LTC_LARGE_SIZE = 4096 };

/// Returns the stand-in of a symbol in `sample`. `rank` is the symbol's
/// position in the order of the symbols' sizes; stand-ins have the same order
/// in each sample.
///
/// Each of the six lowest bits, of a size and of a size minus one, is 0 in some
/// samples and 1 in others. So the samples show how a quotient by a power of
/// two is rounded, and how a quotient of that quotient is rounded. The third
/// sample is more than twice as large as the first: code with one step for each
/// doubling of a size (for example, a search or a sort) differs between the
/// samples, and therefore has no general form.
///
/// The stand-ins of a sample are in general position: if they formed an
/// arithmetic progression, some different sums of stand-ins would be equal in
/// all samples. Two different sums of up to four stand-ins (of eight
/// consecutive ranks) have different remainders modulo 64 in at least one
/// sample, and are therefore different numbers there.
///
/// No stand-in is a multiple of 4 and, at the six largest scales, none is a
/// multiple of 3, 5 or 7. Otherwise, if a size is divided into that number of
/// parts, the parts could have equal lengths in only one sample, in which their
/// equal constants and ops would be merged. The remainders modulo 3 are 1, 2, 1
/// and 2, which shows how a third is rounded.
static inline int64_t ltcSizeStandIn(size_t scale, size_t rank, size_t sample) {
  static const int64_t start[LTC_STAND_IN_SCALES][LTC_GENERAL_SAMPLES] = {
      {257, 409, 703, 547},
      {257, 409, 703, 547},
      {4112, 6544, 11248, 8752},
      {263168, 418816, 719872, 560128},
      {257, 409, 703, 547},
      {66, 105, 182, 140},
      {12, 19, 33, 26},
      {5, 8, 14, 11},
      {2, 3, 6, 4},
      {1, 2, 4, 3}};
  static const int64_t step[LTC_STAND_IN_SCALES][LTC_GENERAL_SAMPLES] = {
      {10, 16, 27, 21},     {10, 16, 27, 21},
      {160, 256, 432, 336}, {10240, 16384, 27648, 21504},
      {10, 16, 27, 21},     {4, 6, 11, 9},
      {2, 3, 5, 4},         {1, 2, 3, 2},
      {1, 2, 3, 2},         {1, 1, 2, 1}};
  /// Growth from rank to rank at the second and fifth scale, in sixteenths.
  static const int64_t spread[LTC_GENERAL_SAMPLES] = {33, 35, 38, 36};
  static const int64_t steep[LTC_GENERAL_SAMPLES] = {130, 139, 149, 143};
  const int64_t *growth = scale == LTC_SPREAD_STAND_INS  ? spread
                          : scale == LTC_STEEP_STAND_INS ? steep
                                                         : 0;
  static const int64_t rests[8][LTC_GENERAL_SAMPLES] = {
      {37, 1, 51, 46},  {39, 21, 14, 19}, {38, 58, 21, 35}, {18, 13, 42, 39},
      {41, 26, 55, 57}, {21, 7, 59, 62},  {7, 34, 46, 53},  {2, 37, 61, 43}};
  const int64_t number = (int64_t)rank;
  const int64_t steps = step[scale][sample];
  const int64_t wiggle = 7 * number * number + 3 * number;
  const int64_t jitter = wiggle % (scale < 6 ? steps - 2 : steps);
  int64_t blocks =
      start[scale][sample] + steps * number + jitter + number * number / 16;
  for (size_t i = 0; growth && i < rank; ++i)
    blocks = blocks < (INT64_C(1) << 40) ? blocks * growth[sample] / 16
                                         : blocks + steps;
  int64_t value = 64 * blocks + rests[rank % 8][sample];
  while (scale < 6 && (value % 3 != 1 + (int64_t)sample % 2 || value % 5 == 0 ||
                       value % 7 == 0))
    value += 64;
  return value;
}

/// Numbers that are added to the stand-ins of the first five scales if the
/// symbol bounds slices of varying lengths, as the number of rows of a data set
/// does. Such sizes may be much larger than others, and no size may exceed its
/// stand-in. The added numbers are multiples of 64 and of 3, 5 and 7, and so
/// preserve the remainders for which the stand-ins are chosen.
static const int64_t LTC_BOUND_STAND_INS[LTC_GENERAL_SAMPLES] = {
    64 * INT64_C(1048530), 64 * INT64_C(1677690), 64 * INT64_C(2411640),
    64 * INT64_C(2031540)};

#endif // TORCH_LTC_C_SIZE_STAND_INS_H
