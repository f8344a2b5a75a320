//===- BufferPlan.h - Location of each value of the program -----*- C++ -*-===//
//
// The plan that `ltc-mlir-plan-buffers` writes to the program's attributes,
// resolved for every value:
//
// * `torch_ltc.places` of a command: the location of each of its results;
// * `torch_ltc.place` of a result of the program: the parameter that is the
//   result (forwarded) or whose buffer the result overwrites (donated), or an
//   output. A value that lies elsewhere is copied there at the end;
// * `torch_ltc.arena_bytes` of the program.
//
// The results of views and bounds checks lie in their operand's place;
// constants lie in the executable's data.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_KERNELS_BUFFERPLAN_H
#define TORCH_LTC_KERNELS_BUFFERPLAN_H

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace mlir::torch_ltc {

/// Arena ranges start at multiples of this many bytes.
inline constexpr int64_t kBufferAlignment = 64;

struct PlannedBuffer {
  enum class Place { Parameter, Scalar, Output, Arena, Constant };
  Place place;
  /// Index among tensor parameters, scalar parameters, outputs or constants.
  unsigned index = 0;
  int64_t bytes = 0;
  /// Offset and lifetime of an arena range, which is live from command `first`
  /// to `last`; the number of commands denotes the end of the program.
  int64_t arenaOffset = 0, first = 0, last = 0;
};

/// A contiguous part of a buffer.
struct BufferPart {
  unsigned buffer = 0;
  int64_t offset = 0; ///< bytes

  bool operator==(const BufferPart &other) const {
    return buffer == other.buffer && offset == other.offset;
  }
};

/// Where an output lies, and which parameter it is, overwrites or updates.
struct PlannedOutput {
  std::optional<unsigned> donatedParameter;
  std::optional<unsigned> forwardedParameter;
  /// The parameter that the output updates (`kUpdatesAttr`).
  std::optional<unsigned> updatedParameter;
  /// Set if the bytes must be copied to the output at the end of the program.
  std::optional<BufferPart> copyFrom;
  BufferPart part; ///< the output's location
  int64_t bytes = 0;
};

/// A part of a join's result that must be copied, because it wasn't written in
/// place.
struct CopiedPart {
  Value source;
  BufferPart destination;
};

struct BufferPlan {
  SmallVector<PlannedBuffer> buffers;
  /// Places of the arguments and of the commands' operands and results.
  DenseMap<Value, BufferPart> parts;
  SmallVector<PlannedOutput> outputs;
  SmallVector<DenseElementsAttr> constants;
  int64_t arenaBytes = 0;

  /// The parts that the runtime must copy into the result of `join`.
  SmallVector<CopiedPart> getCopiedParts(ltc::JoinOp join) const;

  /// Reads the plan in the program's attributes. Emits an error if there is
  /// none or if it is inconsistent.
  static FailureOr<BufferPlan> read(func::FuncOp program);
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_KERNELS_BUFFERPLAN_H
