//===- packed_sequences.h - Packed sequences as padded ones -----*- C++ -*-===//
//
// torch packs sequences of different lengths (nn.utils.rnn.PackedSequence):
// first the first element of each sequence, then the second element of each
// sequence that has one, and so on. The ops of recurrent layers need a row for
// every sequence in each step.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_OPS_PACKED_SEQUENCES_H
#define TORCH_LTC_OPS_PACKED_SEQUENCES_H

#include <ATen/core/Tensor.h>

#include <optional>

namespace torch_ltc {

/// Maps the N rows of packed sequences, the longest sequence first, to T steps
/// of B rows and back. Backwards, a sequence's steps begin with its last
/// element.
class Packing {
public:
  /// Returns none if `batchSizes` doesn't fit `data`, or if the steps would
  /// have many more rows than the sequences have elements.
  static std::optional<Packing> of(const at::Tensor &batchSizes,
                                   const at::Tensor &data, bool bidirectional);

  int64_t batch() const { return numSequences; }

  /// Pads packed rows [N, ...] to steps [T, B, ...]: a sequence has the row
  /// `filler` [1, ...] in each step after its end.
  at::Tensor pad(const at::Tensor &packed, const at::Tensor &filler,
                 bool backwards) const;
  /// Packs the rows of steps [T, B, ...] into rows [N, ...], without the rows
  /// after a sequence's end.
  at::Tensor pack(const at::Tensor &steps, bool backwards) const;
  /// Returns each sequence's last step in `steps` [T, B, ...] as [B, ...].
  at::Tensor last(const at::Tensor &steps) const;

private:
  int64_t numSteps = 0, numSequences = 0, numElements = 0;
  /// Indices on the data's device. For each direction, `elements` maps each row
  /// of the steps to its packed row, and `rows` maps each packed row to its row
  /// of the steps. `lastRows` contains the row of each sequence's last step.
  at::Tensor elements[2], rows[2], lastRows;
};

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_PACKED_SEQUENCES_H
