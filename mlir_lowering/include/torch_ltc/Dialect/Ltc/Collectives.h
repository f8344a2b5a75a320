//===- Collectives.h - Calls that exchange values between ranks -*- C++ -*-===//
//
// Host calls of the ops in `ltc_backend/distributed/collective_ops.h`. The last
// input and the last result of `begin` and `finish` are the exchanged value,
// which stays at one address from the start of `begin` to the end of `finish`.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DIALECT_LTC_COLLECTIVES_H
#define TORCH_LTC_DIALECT_LTC_COLLECTIVES_H

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"

namespace mlir::torch_ltc {

namespace collective {

inline constexpr llvm::StringLiteral kBlocking = "torch_ltc::collective";
inline constexpr llvm::StringLiteral kStart = "torch_ltc::collective_start";
inline constexpr llvm::StringLiteral kWait = "torch_ltc::collective_wait";
inline constexpr llvm::StringLiteral kBegin = "torch_ltc::collective_begin";
inline constexpr llvm::StringLiteral kFinish = "torch_ltc::collective_finish";

/// Unit attribute of a `begin`: the program called the collective without
/// `async_op`.
inline constexpr llvm::StringLiteral kSynchronous = "torch_ltc.synchronous";

} // namespace collective

/// Returns `op` as a host call of `callee`, or null if it is a different op.
inline ltc::HostCallOp asHostCall(Operation *op, StringRef callee) {
  auto call = dyn_cast_if_present<ltc::HostCallOp>(op);
  return call && call.getCallee() == callee ? call : ltc::HostCallOp();
}

/// Returns the kind ("all_reduce") of the collective that `call` runs or
/// begins. `call` must not be a `wait` or `finish`.
inline StringRef getCollectiveKind(ltc::HostCallOp call) {
  return cast<StringAttr>(call.getArguments()[2]).getValue();
}

/// The `begin` whose collective `op` finishes; null if `op` isn't a `finish`.
inline ltc::HostCallOp getBeginOf(Operation *op) {
  ltc::HostCallOp finish = asHostCall(op, collective::kFinish);
  return finish ? finish.getInputs().back().getDefiningOp<ltc::HostCallOp>()
                : ltc::HostCallOp();
}

/// The call that starts the collective for which `op` waits; null if that call
/// is in another program or `op` doesn't wait.
inline ltc::HostCallOp getStartOf(Operation *op) {
  if (ltc::HostCallOp wait = asHostCall(op, collective::kWait))
    return asHostCall(wait.getInputs()[1].getDefiningOp(), collective::kStart);
  return getBeginOf(op);
}

/// Returns the kind ("all_reduce") of the collective that `op` runs, starts or
/// waits for. Returns "" for other ops, and for a wait whose start is in
/// another program.
inline StringRef getKindOfCommand(Operation *op) {
  if (ltc::HostCallOp start = getStartOf(op))
    return getCollectiveKind(start);
  for (StringRef callee :
       {collective::kBlocking, collective::kStart, collective::kBegin})
    if (ltc::HostCallOp call = asHostCall(op, callee))
      return getCollectiveKind(call);
  return "";
}

/// Whether the result of a collective of this kind can overwrite its input,
/// because both have the same sizes.
inline bool updatesInput(StringRef kind) {
  return kind == "all_reduce" || kind == "reduce" || kind == "broadcast";
}

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_DIALECT_LTC_COLLECTIVES_H
