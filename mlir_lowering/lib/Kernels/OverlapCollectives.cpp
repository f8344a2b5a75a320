//===- OverlapCollectives.cpp - Collectives in the program's memory -------===//

#include "torch_ltc/Dialect/Ltc/Collectives.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVES
#include "torch_ltc/Kernels/Passes.h.inc"

namespace {

/// Creates the `begin` for `call`, a blocking collective or a start, with a
/// result of `type`.
ltc::HostCallOp createBegin(OpBuilder &builder, ltc::HostCallOp call,
                            Type type) {
  Type dtype = call.getInputDtypes().back();
  Attribute order = call.getResultDtypes()[0];
  return ltc::HostCallOp::create(
      builder, call.getLoc(), TypeRange{call.getOutputs()[0].getType(), type},
      collective::kBegin, call.getInputs(), call.getArguments(),
      builder.getArrayAttr({order, TypeAttr::get(dtype)}));
}

Value createFinish(OpBuilder &builder, Location loc, ltc::HostCallOp begin) {
  // An input that the collective doesn't overwrite must exist until `finish`.
  bool keepsInput = !updatesInput(getCollectiveKind(begin));
  SmallVector<Value> inputs{begin.getOutputs()[0], begin.getOutputs()[1]};
  Attribute order = begin.getResultDtypes()[0];
  Attribute dtype = begin.getResultDtypes()[1];
  SmallVector<Attribute> arguments{order, builder.getUnitAttr(), dtype};
  if (keepsInput) {
    inputs.insert(inputs.begin() + 1, begin.getInputs().back());
    arguments[1] = dtype;
  }
  return ltc::HostCallOp::create(builder, loc, begin.getOutputs()[1].getType(),
                                 collective::kFinish, inputs,
                                 builder.getArrayAttr(arguments),
                                 builder.getArrayAttr({dtype}))
      .getOutputs()[0];
}

/// Splits a blocking collective into `begin` and `finish`, even if its result
/// has no users, because the other ranks need the call.
void split(ltc::HostCallOp call) {
  auto type = cast<RankedTensorType>(call.getOutputs()[1].getType());
  if (getCollectiveKind(call) == "await" || type.getNumElements() == 0)
    return;
  OpBuilder builder(call);
  ltc::HostCallOp begin = createBegin(builder, call, type);
  begin->setAttr(collective::kSynchronous, builder.getUnitAttr());
  Value value = createFinish(builder, call.getLoc(), begin);
  call.getOutputs()[0].replaceAllUsesWith(begin.getOutputs()[0]);
  call.getOutputs()[1].replaceAllUsesWith(value);
  call.erase();
}

/// Replaces a start and its wait by `begin` and `finish` if the program
/// contains exactly one wait for the start.
void pair(ltc::HostCallOp start) {
  ltc::HostCallOp wait;
  for (Operation *user : start.getOutputs()[0].getUsers()) {
    ltc::HostCallOp found = asHostCall(user, collective::kWait);
    if (!found || found.getInputs()[1] != start.getOutputs()[0] ||
        found == wait)
      continue;
    if (wait)
      return;
    wait = found;
  }
  if (!wait)
    return;
  OpBuilder builder(start);
  ltc::HostCallOp begin =
      createBegin(builder, start, wait.getOutputs()[0].getType());
  builder.setInsertionPoint(wait);
  Value value = createFinish(builder, wait.getLoc(), begin);
  wait.getOutputs()[0].replaceAllUsesWith(value);
  wait.erase();
  start.getOutputs()[0].replaceAllUsesWith(begin.getOutputs()[0]);
  start.erase();
}

class OverlapCollectives
    : public impl::OverlapCollectivesBase<OverlapCollectives> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> program = findProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    // Collect the calls first, because `pair` also erases the wait of a start.
    SmallVector<ltc::HostCallOp> calls;
    for (auto call : program->getBody().front().getOps<ltc::HostCallOp>())
      if (call.getCallee() == collective::kBlocking ||
          call.getCallee() == collective::kStart)
        calls.push_back(call);
    for (ltc::HostCallOp call : calls)
      if (call.getCallee() == collective::kBlocking)
        split(call);
      else
        pair(call);
  }
};

} // namespace
} // namespace mlir::torch_ltc
