//===- DecomposeIndexing.cpp - Reads at flat positions --------------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_indexing.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

// Selects elements of the flattened tensor. index_select fails for a position
// out of bounds; eager's kernel then runs the op, and raises the error.
static LogicalResult decomposeTake(AtenTakeOp op, FormulaBuilder &b) {
  Value x = op.getSelf(), index = op.getIndex();
  int64_t length = b.numElements(x);
  if (length == 0)
    return b.fail("it takes from an empty tensor");
  Value flat = b.view(x, {length});
  index = b.view(index, {b.numElements(index)});
  Value fromStart = b.where(b.lt(index, 0.0), b.add(index, length), index);
  return b.replaceWith({b.indexSelect(flat, 0, fromStart)});
}

void mlir::torch_ltc::populateIndexingDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeTake);
}
