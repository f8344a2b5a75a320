//===- BufferPlan.h - Where each value of the program lies ------*- C++ -*-===//
//
// Gives every tensor of a program at the kernels stage a place: a parameter, a
// constant, an output's memory, or a range of the arena. Decides
//
// * forwarding: an output that is a parameter unchanged is not written at all;
// * donation: an output may be written into the memory of a parameter marked
//   `torch_ltc.donatable` if every other reader of that parameter runs before
//   the writer, and the writer reads it only at the element that it writes;
// * reuse of an operand's arena range by a result, under the same condition;
// * arena offsets: largest buffers first, each at the smallest gap that fits
//   among the buffers that live at the same time.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_KERNELS_BUFFERPLAN_H
#define TORCH_LTC_KERNELS_BUFFERPLAN_H

#include "torch_ltc/Kernels/KernelSchedule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <memory>
#include <optional>

namespace mlir::torch_ltc {

/// Unit attribute of arguments whose memory the caller gives away.
inline constexpr llvm::StringLiteral kDonatableAttr = "torch_ltc.donatable";
/// On a result: the number of the argument whose new value it is.
inline constexpr llvm::StringLiteral kUpdatesAttr = "torch_ltc.updates";
/// Name of a parameter: a string attribute of arguments.
inline constexpr llvm::StringLiteral kNameAttr = "torch_ltc.name";

/// Arena ranges start at multiples of this many bytes.
inline constexpr int64_t kBufferAlignment = 64;

struct PlannedBuffer {
  enum class Place { Parameter, Scalar, Output, Arena, Constant };
  Place place;
  /// Index among tensor parameters, scalar parameters, outputs or constants.
  unsigned index = 0;
  int64_t arenaOffset = 0;
  int64_t bytes = 0;
};

/// A contiguous part of a buffer.
struct BufferPart {
  unsigned buffer = 0;
  int64_t offset = 0; ///< bytes
};

/// How an output comes to be.
struct PlannedOutput {
  std::optional<unsigned> donatedParameter;
  std::optional<unsigned> forwardedParameter;
  /// Whose new value it is (`kUpdatesAttr`).
  std::optional<unsigned> updatedParameter;
  /// Set if the bytes must be copied to the output at the program's end.
  std::optional<BufferPart> copyFrom;
  BufferPart part; ///< where the output is written
  int64_t bytes = 0;
};

struct BufferPlan {
  SmallVector<PlannedBuffer> buffers;
  DenseMap<Value, BufferPart> parts;
  SmallVector<PlannedOutput> outputs;
  SmallVector<DenseElementsAttr> constants;
  int64_t arenaBytes = 0;
  /// For each kernel call that writes results over operands: for each result
  /// the operand's number or -1.
  DenseMap<Operation *, SmallVector<int64_t>> aliases;

  /// Plans `program`, whose body is calls, views and constants.
  static FailureOr<BufferPlan> compute(func::FuncOp program);
};

/// Tells when kernels may update an argument in place. Remembers schedules.
class WriteOverAnalysis {
public:
  /// Whether `result` of the kernel may be written over its argument: both have
  /// as many elements of one type, and each element of the argument is read for
  /// the last time before the element of the result at the same place is
  /// written.
  bool canWriteOver(func::FuncOp kernel, unsigned argument, unsigned result);

private:
  const std::optional<KernelSchedule> &getSchedule(func::FuncOp kernel);

  DenseMap<Operation *, std::unique_ptr<std::optional<KernelSchedule>>>
      schedules;
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_KERNELS_BUFFERPLAN_H
