//===- Attributes.h - Attributes of programs and kernels --------*- C++ -*-===//
//
// All attributes that the project puts on ops of other dialects. Those of the
// program's function are part of every stage's text.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DIALECT_LTC_ATTRIBUTES_H
#define TORCH_LTC_DIALECT_LTC_ATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace mlir::torch_ltc {

//===----------------------------------------------------------------------===//
// Of the program's parameters and results
//===----------------------------------------------------------------------===//

/// Name of a parameter: a string.
inline constexpr llvm::StringLiteral kNameAttr = "torch_ltc.name";
/// Unit attribute of parameters whose memory the caller gives away.
inline constexpr llvm::StringLiteral kDonatableAttr = "torch_ltc.donatable";
/// On a result: the number of the argument whose new value it is, an i64.
inline constexpr llvm::StringLiteral kUpdatesAttr = "torch_ltc.updates";
/// Unit attribute of parameters and results whose integers are unsigned in
/// torch: from the linalg stage on, types have no signs.
inline constexpr llvm::StringLiteral kUnsignedAttr = "torch_ltc.unsigned";

//===----------------------------------------------------------------------===//
// Of the program's ops
//===----------------------------------------------------------------------===//

/// Groups that the outliner turns into kernels: an i64.
inline constexpr llvm::StringLiteral kGroupAttr = "torch_ltc.group";
/// An op's place in its group, an i64: the order in which the ops were found to
/// fit one domain. In another order they may not. Removed by the outliner.
inline constexpr llvm::StringLiteral kGroupOrderAttr = "torch_ltc.group_order";
/// Copies of ops that are to run again in another group: an i64, equal for
/// those of one group. Removed by GroupOps.
inline constexpr llvm::StringLiteral kRecomputedAttr = "torch_ltc.recomputed";

//===----------------------------------------------------------------------===//
// Of kernels
//===----------------------------------------------------------------------===//

/// How the loops run: an `#ltc.schedule`. Kernels without one are bufferized.
inline constexpr llvm::StringLiteral kScheduleAttr = "torch_ltc.schedule";
/// On kernels that write results over operands, and on their calls: for each
/// result the operand's number or -1 (array<i64>).
inline constexpr llvm::StringLiteral kAliasesAttr = "torch_ltc.aliases";

//===----------------------------------------------------------------------===//
// Of the buffer plan
//===----------------------------------------------------------------------===//

/// On a command: where each of its results lies, an array of `#ltc.place`.
inline constexpr llvm::StringLiteral kPlacesAttr = "torch_ltc.places";
/// On a result of the program: where it is handed over, an `#ltc.place`.
inline constexpr llvm::StringLiteral kPlaceAttr = "torch_ltc.place";
/// On the program: the size of the arena, an i64.
inline constexpr llvm::StringLiteral kArenaBytesAttr = "torch_ltc.arena_bytes";

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_DIALECT_LTC_ATTRIBUTES_H
