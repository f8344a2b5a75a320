//===- Attention.cpp - Attention to ltc.attention -------------------------===//
//
// These lowerings are for our own runtime, whose attention command never stores
// the scores. For other compilers, the ops are decomposed.
//
//===----------------------------------------------------------------------===//

#include "OpLowering.h"
#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps_linear.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

/// Lowers an op whose tensors are the library call's in the same order.
template <typename AttentionOp, typename OpTy>
static LogicalResult lowerAttention(OpLowering &op, OpTy args) {
  SmallVector<Value> operands;
  for (Value argument : op.getArguments())
    if (op.isTensor(argument))
      operands.push_back(op.tensor(argument));
  SmallVector<Type> results;
  for (unsigned i = 0; i < op.op->getNumResults(); ++i)
    results.push_back(op.resultType(i));
  auto call = AttentionOp::create(op.builder, op.loc, results, operands,
                                  typename AttentionOp::Properties());
  call.setCausal(op.boolean(args.getIsCausal()));
  return op.replaceWith(call->getResults());
}

void torch_ltc::populateAttentionLowerings(LoweringTable &table) {
  table.add(lowerAttention<ltc::AttentionOp, TorchLtcAttentionOp>);
  table.add(
      lowerAttention<ltc::AttentionBackwardOp, TorchLtcAttentionBackwardOp>);
}
