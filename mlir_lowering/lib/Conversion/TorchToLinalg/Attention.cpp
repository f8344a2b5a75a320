//===- Attention.cpp - Attention to ltc.library_call ----------------------===//
//
// For our own runtime, whose command never stores the scores. Everybody else
// gets the ops' decomposition.
//
//===----------------------------------------------------------------------===//

#include "OpLowering.h"
#include "torch_ltc/Dialect/Ltc/LtcDialect.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// Tensors, a mask that may be none, and whether it is causal.
static LogicalResult callLibrary(OpLowering &op, StringRef function) {
  unsigned numTensors = op.getNumOperands() - 2;
  SmallVector<Value> operands;
  for (unsigned i = 0; i < numTensors; ++i)
    operands.push_back(op.tensor(i));
  if (!op.isNone(numTensors))
    operands.push_back(op.tensor(numTensors));
  SmallVector<Type> results;
  for (unsigned i = 0; i < op.op->getNumResults(); ++i)
    results.push_back(op.resultType(i));
  auto call =
      ltc::LibraryCallOp::create(op.builder, op.loc, results,
                                 op.builder.getStringAttr(function), operands);
  if (op.boolean(numTensors + 1))
    call->setAttr("causal", op.builder.getUnitAttr());
  return op.replaceWith(call.getResults());
}

/// attention(query, key, value, mask, is_causal)
static LogicalResult lowerAttention(OpLowering &op) {
  return callLibrary(op, ltc::kAttentionName);
}

/// attention_backward(grad_output, query, key, value, output, log_sum, mask,
/// is_causal)
static LogicalResult lowerAttentionBackward(OpLowering &op) {
  return callLibrary(op, ltc::kAttentionBackwardName);
}

void torch_ltc::populateAttentionLowerings(LoweringTable &table) {
  table.add("torch_ltc.attention", lowerAttention);
  table.add("torch_ltc.attention_backward", lowerAttentionBackward);
}
