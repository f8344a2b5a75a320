//===- Attention.cpp - Attention to ltc.attention -------------------------===//
//
// These lowerings are for our own runtime, whose attention command never stores
// the scores. For other compilers, the ops are decomposed.
//
//===----------------------------------------------------------------------===//

#include "OpLowering.h"
#include "torch_ltc/Dialect/Ltc/LtcDialect.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// Lowers an op whose operands are the library call's tensors in the same
/// order, an optional mask, and the bool `is_causal`.
template <typename AttentionOp>
static LogicalResult lowerAttention(OpLowering &op) {
  unsigned numTensors = op.getNumOperands() - 2;
  SmallVector<Value> operands;
  for (unsigned i = 0; i < numTensors; ++i)
    operands.push_back(op.tensor(i));
  if (!op.isNone(numTensors))
    operands.push_back(op.tensor(numTensors));
  SmallVector<Type> results;
  for (unsigned i = 0; i < op.op->getNumResults(); ++i)
    results.push_back(op.resultType(i));
  auto call = AttentionOp::create(op.builder, op.loc, results, operands,
                                  typename AttentionOp::Properties());
  call.setCausal(op.boolean(numTensors + 1));
  return op.replaceWith(call->getResults());
}

void torch_ltc::populateAttentionLowerings(LoweringTable &table) {
  table.add("torch_ltc.attention", lowerAttention<ltc::AttentionOp>);
  table.add("torch_ltc.attention_backward",
            lowerAttention<ltc::AttentionBackwardOp>);
}
