//===- Attributes.h - Attributes of programs and kernels --------*- C++ -*-===//
//
// The discardable attributes that the project adds to ops. Those of the
// program's function appear in the text of each stage.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DIALECT_LTC_ATTRIBUTES_H
#define TORCH_LTC_DIALECT_LTC_ATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace mlir::torch_ltc {

//===----------------------------------------------------------------------===//
// Attributes of the program's parameters and results
//===----------------------------------------------------------------------===//

/// Name of a parameter: a string.
inline constexpr llvm::StringLiteral kNameAttr = "torch_ltc.name";
/// Unit attribute of parameters whose buffers the program may reuse for
/// results.
inline constexpr llvm::StringLiteral kDonatableAttr = "torch_ltc.donatable";
/// On a result: the index of the argument that it updates, an i64.
inline constexpr llvm::StringLiteral kUpdatesAttr = "torch_ltc.updates";
/// Unit attribute of parameters and results whose integers are unsigned in
/// torch. It is needed because types are signless from the linalg stage on.
inline constexpr llvm::StringLiteral kUnsignedAttr = "torch_ltc.unsigned";
/// Unit attribute of parameters and results that are complex numbers in torch;
/// their last dim, of size 2, is the real and the imaginary part.
inline constexpr llvm::StringLiteral kComplexAttr = "torch_ltc.complex";

//===----------------------------------------------------------------------===//
// Attributes of the program's ops
//===----------------------------------------------------------------------===//

/// Group of ops that the outliner turns into one kernel: an i64.
inline constexpr llvm::StringLiteral kGroupAttr = "torch_ltc.group";
/// Position of an op in its group, an i64: the order in which the ops were
/// added to the fusion domain. If they were added in a different order, the
/// domain might not accept all of them. Removed by the outliner.
inline constexpr llvm::StringLiteral kGroupOrderAttr = "torch_ltc.group_order";
/// On a copy of an op that a group recomputes: an i64, equal for all copies
/// that one group needs. Removed by GroupOps.
inline constexpr llvm::StringLiteral kRecomputedAttr = "torch_ltc.recomputed";

//===----------------------------------------------------------------------===//
// Attributes of general programs
//===----------------------------------------------------------------------===//

/// Unit attribute of a module: the sizes that vary are stand-ins, and the code
/// must be correct for all sizes.
inline constexpr llvm::StringLiteral kGeneralAttr = "torch_ltc.general";
/// On a scheduled kernel that is compiled for all sizes: the axes of its
/// schedule whose sizes are stand-ins (array<i64>).
inline constexpr llvm::StringLiteral kVaryingAxesAttr =
    "torch_ltc.varying_axes";
/// On a generic that reads a slice: the loops whose step isn't 1 (array<i64>).
/// The scheduler doesn't merge such a loop with the next outer one: in `x[:,
/// ::2]`, the distance between the last element of a row and the first of the
/// next row equals the step only if the size of a row is even.
inline constexpr llvm::StringLiteral kSteppedAttr = "torch_ltc.stepped";
/// On functions: the orders of numbers that the code relies on (array<i64>, see
/// SizeOrder.h).
inline constexpr llvm::StringLiteral kOrdersAttr = "torch_ltc.orders";

//===----------------------------------------------------------------------===//
// Attributes of kernels
//===----------------------------------------------------------------------===//

/// On kernels of a general program: the work of all iterations, an i64 in the
/// unit of kWorkOfThread, from which a binding derives the schedule's grain.
inline constexpr llvm::StringLiteral kWorkAttr = "torch_ltc.work";
/// The schedule of the loops: an `#ltc.schedule`. Kernels without one are
/// bufferized.
inline constexpr llvm::StringLiteral kScheduleAttr = "torch_ltc.schedule";
/// On kernels that write results over operands, and on their calls: for each
/// result, the index of the operand, or -1 (array<i64>).
inline constexpr llvm::StringLiteral kAliasesAttr = "torch_ltc.aliases";

//===----------------------------------------------------------------------===//
// Attributes of the buffer plan
//===----------------------------------------------------------------------===//

/// On a command: the place of each of its results, an array of `#ltc.place`.
inline constexpr llvm::StringLiteral kPlacesAttr = "torch_ltc.places";
/// On a result of the program: where it is returned, an `#ltc.place`.
inline constexpr llvm::StringLiteral kPlaceAttr = "torch_ltc.place";
/// On the program: the size of the arena, an i64.
inline constexpr llvm::StringLiteral kArenaBytesAttr = "torch_ltc.arena_bytes";

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_DIALECT_LTC_ATTRIBUTES_H
