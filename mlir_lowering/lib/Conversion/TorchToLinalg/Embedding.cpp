//===- Embedding.cpp - Rows of a table by index ---------------------------===//

#include "IndexBuilder.h"
#include "OpLowering.h"

#include "torch_ltc/Dialect/Torch/TorchOps_embedding.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

static LogicalResult lowerEmbedding(OpLowering &op, AtenEmbeddingOp args) {
  int64_t rows = op.sizes(args.getWeight())[0];
  SmallVector<int64_t> indexSizes(op.sizes(args.getIndices()));
  indexSizes.push_back(1);
  Value indices = op.tensors.reshape(
      op.checkBounds(op.tensor(args.getIndices()), 0, rows), indexSizes);
  Value weight = op.tensor(args.getWeight());
  int64_t last = op.resultSizes().size() - 1;
  Value result = op.tensors.elementwise(
      op.resultSizes(), op.resultType().getElementType(), indices,
      [&](OpBuilder &nested, Location loc, ValueRange inputs) {
        IndexBuilder b(nested, loc);
        Value row = b.fromElement(inputs[0], rows);
        Value column = linalg::IndexOp::create(nested, loc, last);
        return SmallVector<Value>{b.extract(weight, {row, column})};
      })[0];
  return op.replaceWith(result);
}

/// Counts the lookups of each row, in float64.
static Value countLookups(OpLowering &op, Value indices, int64_t rows) {
  Type dtype = Float64Type::get(op.builder.getContext());
  return op.tensors.loop(
      cast<RankedTensorType>(indices.getType()).getShape(),
      op.tensors.zeros(rows, dtype),
      [&](OpBuilder &nested, Location loc, ValueRange position, Value carried) {
        IndexBuilder b(nested, loc);
        ScalarBuilder s(nested, loc, dtype);
        Value row = b.fromElement(b.extract(indices, position), rows);
        Value count = s.add(b.extract(carried, row), s.constant(1));
        return b.insert(count, carried, row);
      });
}

/// Adds whole rows one after the other. Like eager, ignores lookups outside the
/// table.
static LogicalResult lowerEmbeddingBackward(OpLowering &op,
                                            AtenEmbeddingDenseBackwardOp args) {
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  int64_t rows = op.resultSizes()[0], columns = op.resultSizes()[1];
  int64_t count = op.tensorType(args.getIndices()).getNumElements();
  int64_t padding = op.integer(args.getPaddingIdx());
  Value gradient =
      op.tensors.reshape(op.tensor(args.getGradOutput()), {count, columns});
  Value indices = op.tensors.flatten(op.tensor(args.getIndices()));
  Value lookups = op.boolean(args.getScaleGradByFreq())
                      ? countLookups(op, indices, rows)
                      : Value();
  Value zeros = op.tensors.zeros(op.resultSizes(), compute);
  Value sum = op.tensors.loop(
      count, zeros,
      [&](OpBuilder &nested, Location loc, ValueRange position, Value carried) {
        IndexBuilder b(nested, loc);
        TensorBuilder tensors(nested, loc);
        Value element = b.extract(indices, position);
        Value row = b.fromElement(element, rows);
        Value isInside = b.equal(row, b.toIndex(element));
        auto index = [&](int64_t value) -> OpFoldResult {
          return nested.getIndexAttr(value);
        };
        SmallVector<OpFoldResult> sizes{index(1), index(columns)};
        SmallVector<OpFoldResult> ones{index(1), index(1)};
        Value addend = tensor::ExtractSliceOp::create(
            nested, loc, gradient,
            SmallVector<OpFoldResult>{position[0], index(0)}, sizes, ones);
        SmallVector<OpFoldResult> target{row, index(0)};
        Value scale;
        if (lookups) {
          ScalarBuilder d(nested, loc, nested.getF64Type());
          scale = d.div(d.constant(1), b.extract(lookups, row));
          scale = d.convert(scale, d.dtype, compute);
        }
        Value old = tensor::ExtractSliceOp::create(nested, loc, carried, target,
                                                   sizes, ones);
        Value added = tensors.update(
            old, addend,
            [&](OpBuilder &inner, Location loc, ValueRange inputs) {
              ScalarBuilder s(inner, loc, compute);
              Value x =
                  s.convert(inputs[0], op.dtype(args.getGradOutput()), compute);
              if (scale)
                x = s.mul(x, scale);
              // For an ignored lookup, add 0, which is cheaper than a branch
              // in the loop.
              x = s.select(isInside, x, s.integer(0));
              if (padding >= 0) {
                IndexBuilder positions(inner, loc);
                Value isPadding =
                    positions.equal(row, positions.constant(padding));
                x = s.select(isPadding, s.integer(0), x);
              }
              return SmallVector<Value>{s.add(inputs[1], x)};
            })[0];
        return tensor::InsertSliceOp::create(nested, loc, added, carried,
                                             target, sizes, ones)
            .getResult();
      });
  return op.replaceWith(op.tensors.convert(sum, compute, dtype));
}

void torch_ltc::populateEmbeddingLowerings(LoweringTable &table) {
  table.add(lowerEmbedding);
  table.add(lowerEmbeddingBackward);
}
