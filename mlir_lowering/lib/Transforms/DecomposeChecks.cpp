//===- DecomposeChecks.cpp - Checks of values that eager rejects ----------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_indexing.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

// Adds to the token a 0 whose computation fails unless the condition holds.
// After a failure, eager reruns the op and raises an error with the op's
// message.
static LogicalResult decomposeAssert(Aten_FunctionalAssertAsyncMsgOp op,
                                     FormulaBuilder &b) {
  if (b.numElements(op.getSelf()) != 1)
    return b.fail("its condition isn't one bool");
  Value token = op.getDepToken();
  Value condition = b.ne(op.getSelf(), 0.0);
  Value zero = b.cast(b.zeroIfAll(condition), b.dtype(token));
  return b.replaceWith({b.add(b.view(token, {b.numElements(token)}), zero)});
}

void mlir::torch_ltc::populateCheckDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeAssert);
}
