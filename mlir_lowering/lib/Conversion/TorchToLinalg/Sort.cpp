//===- Sort.cpp - Sorting along a dimension -------------------------------===//
//
// A stable sort is lowered to a bottom-up merge sort of each line: in each
// pass, sorted runs of 1, 2, 4, ... elements are merged in pairs from one
// tensor into another. In other sorts, the order of equal elements depends on
// the algorithm of PyTorch's kernel, so the program calls that kernel
// (HostCall.h); other compilers use the stable sort.
//
//===----------------------------------------------------------------------===//

#include "HostCall.h"
#include "IndexBuilder.h"

#include "torch_ltc/Dialect/Ltc/SizeOrder.h"
#include "torch_ltc/Dialect/Torch/TorchOps_reduction.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

namespace {
class LineSort {
public:
  LineSort(TensorBuilder &tensors, Type dtype, ArrayRef<int64_t> sizes,
           int64_t dim, bool descending)
      : tensors(tensors), builder(tensors.builder), sizes(sizes), dim(dim),
        descending(descending), dtype(dtype) {}

  /// The sorted values and their former positions along the dimension.
  std::pair<Value, Value> sort(Value input) {
    Value values = input;
    Value positions = tensors.fromIndices(
        sizes, builder.getI64Type(),
        [&](OpBuilder &nested, Location loc, ValueRange indices) {
          return IndexBuilder(nested, loc).toInteger(indices[dim]);
        });
    for (int64_t run = 1; run < sizes[dim]; run *= 2)
      std::tie(values, positions) = mergeRuns(values, positions, run);
    return {values, positions};
  }

private:
  /// Merges each pair of neighboring runs of `run` elements.
  std::pair<Value, Value> mergeRuns(Value values, Value positions,
                                    int64_t run) {
    IndexBuilder b(builder, tensors.loc);
    SmallVector<int64_t> pairs(sizes);
    pairs[dim] = llvm::divideCeil(sizes[dim], 2 * run);
    SmallVector<Value> lows, highs, steps;
    for (int64_t count : pairs) {
      lows.push_back(b.constant(0));
      highs.push_back(b.constant(count));
      steps.push_back(b.constant(1));
    }
    SmallVector<Value> targets{tensors.empty(sizes, storageTypeOf(dtype)),
                               tensors.empty(sizes, builder.getI64Type())};
    auto nest = scf::buildLoopNest(
        builder, tensors.loc, lows, highs, steps, targets,
        [&](OpBuilder &nested, Location loc, ValueRange indices,
            ValueRange carried) {
          IndexBuilder inner(nested, loc);
          return mergePair(inner, values, positions, run, indices, carried);
        });
    return {nest.results[0], nest.results[1]};
  }

  scf::ValueVector mergePair(IndexBuilder &b, Value values, Value positions,
                             int64_t run, ValueRange indices,
                             ValueRange carried) {
    Value count = b.constant(sizes[dim]);
    Value begin = b.mul(indices[dim], 2 * run);
    Value middle = b.min(b.add(begin, run), count);
    Value end = b.min(b.add(begin, 2 * run), count);
    auto merge = scf::ForOp::create(
        b.builder, b.loc, begin, end, b.constant(1),
        ValueRange{carried[0], carried[1], begin, middle},
        [&](OpBuilder &nested, Location loc, Value target, ValueRange state) {
          IndexBuilder inner(nested, loc);
          auto at = [&](Value tensor, Value position) {
            SmallVector<Value> place(indices);
            place[dim] = inner.min(position, inner.constant(sizes[dim] - 1));
            return inner.extract(tensor, place);
          };
          Value left = state[2], right = state[3];
          Value leftValue = at(values, left), rightValue = at(values, right);
          Value takesRight = comesFromRight(inner, left, middle, right, end,
                                            leftValue, rightValue);
          Value source = inner.select(takesRight, right, left);
          SmallVector<Value> place(indices);
          place[dim] = target;
          Value value = inner.select(takesRight, rightValue, leftValue);
          Value sorted = inner.insert(value, state[0], place);
          Value moved = inner.insert(at(positions, source), state[1], place);
          Value nextLeft = inner.select(takesRight, left, inner.add(left, 1));
          Value nextRight =
              inner.select(takesRight, inner.add(right, 1), right);
          scf::YieldOp::create(nested, loc,
                               ValueRange{sorted, moved, nextLeft, nextRight});
        });
    return {merge.getResult(0), merge.getResult(1)};
  }

  /// Whether the right run's element is next: the right run isn't exhausted,
  /// and the left run either is or has an element that comes strictly after the
  /// right run's.
  Value comesFromRight(IndexBuilder &b, Value left, Value middle, Value right,
                       Value end, Value leftValue, Value rightValue) {
    ScalarBuilder s(b.builder, b.loc, dtype);
    Value before = comesBefore(s, rightValue, leftValue);
    Value leftIsUsedUp = s.logicalNot(b.less(left, middle));
    return s.logicalAnd(b.less(right, end), s.logicalOr(leftIsUsedUp, before));
  }

  /// Whether `a` comes strictly before `b`; NaN is the greatest element.
  Value comesBefore(ScalarBuilder &s, Value a, Value b) {
    Value ordered =
        s.compare(descending ? Comparison::gt : Comparison::lt, a, b);
    if (!s.isFloat())
      return ordered;
    Value byNan = descending
                      ? s.logicalAnd(s.isNan(a), s.logicalNot(s.isNan(b)))
                      : s.logicalAnd(s.isNan(b), s.logicalNot(s.isNan(a)));
    return s.logicalOr(ordered, byNan);
  }

  TensorBuilder &tensors;
  OpBuilder &builder;
  ArrayRef<int64_t> sizes;
  int64_t dim;
  bool descending;
  Type dtype;
};
} // namespace

namespace {
/// Arguments of a sort or topk.
struct SortArguments {
  int64_t dim;
  bool descending;
  /// The number of sorted elements to return; by default, all.
  std::optional<int64_t> count;
};
} // namespace

/// The first `arguments.count` elements of each sorted line, and their former
/// positions.
static std::pair<Value, Value> sortLines(TensorBuilder &tensors, Value input,
                                         Type dtype,
                                         const SortArguments &arguments) {
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> sizes(type.getShape());
  if (sizes.empty()) {
    sizes.push_back(1);
    input = tensors.flatten(input);
  }
  int64_t dim =
      arguments.dim < 0 ? arguments.dim + sizes.size() : arguments.dim;
  auto [values, positions] =
      LineSort(tensors, dtype, sizes, dim, arguments.descending).sort(input);
  if (arguments.count) {
    SmallVector<int64_t> offsets(sizes.size(), 0), strides(sizes.size(), 1);
    sizes[dim] = *arguments.count;
    values = tensors.slice(values, offsets, sizes, strides);
    positions = tensors.slice(positions, offsets, sizes, strides);
  }
  return {values, positions};
}

static LogicalResult lowerStableSort(OpLowering &op, AtenSortStableOp args) {
  Value self = args.getSelf(), stable = args.getStable();
  // The number of passes of a merge sort depends on the size, so a general
  // program can't contain one.
  if (op.isNone(stable) || !op.boolean(stable) || isForAllSizes(op.op))
    return lowerHostCall(op);
  if (llvm::is_contained(op.sizes(self), 0))
    return op.replaceWith(
        {op.tensors.zeros(op.resultSizes(0), op.resultDtype(0)),
         op.tensors.zeros(op.resultSizes(1), op.resultDtype(1))});
  auto [values, positions] =
      sortLines(op.tensors, op.tensor(self), op.dtype(self),
                {op.integer(args.getDim()), op.boolean(args.getDescending()),
                 std::nullopt});
  return op.replaceWith({values, positions});
}

bool torch_ltc::isHostSort(ltc::HostCallOp call) {
  StringRef name = call.getCallee();
  return name == "aten::sort" || name == "aten::sort.stable" ||
         name == "aten::topk";
}

SmallVector<Value> torch_ltc::expandHostSort(OpBuilder &builder,
                                             ltc::HostCallOp call) {
  ArrayAttr arguments = call.getArguments();
  auto integer = [&](unsigned position) {
    return cast<IntegerAttr>(arguments[position]).getInt();
  };
  auto flag = [&](unsigned position) {
    return cast<BoolAttr>(arguments[position]).getValue();
  };
  SortArguments sort;
  if (call.getCallee() == "aten::topk")
    sort = {integer(2), flag(3), integer(1)};
  else if (call.getCallee() == "aten::sort.stable")
    sort = {integer(2), flag(3), std::nullopt};
  else
    sort = {integer(1), flag(2), std::nullopt};
  TensorBuilder tensors(builder, call.getLoc());
  Type dtype = cast<TypeAttr>(arguments[0]).getValue();
  SmallVector<Value> results;
  if (cast<RankedTensorType>(call.getOperand(0).getType()).getNumElements() ==
      0) {
    for (Value result : call.getResults()) {
      auto type = cast<RankedTensorType>(result.getType());
      results.push_back(tensors.zeros(type.getShape(), type.getElementType()));
    }
    return results;
  }
  auto [values, positions] =
      sortLines(tensors, call.getOperand(0), dtype, sort);
  Value sorted[] = {values, positions};
  for (auto [value, result] : llvm::zip_equal(sorted, call.getResults()))
    results.push_back(tensors.reshape(
        value, cast<RankedTensorType>(result.getType()).getShape()));
  return results;
}

void torch_ltc::populateSortLowerings(LoweringTable &table) {
  table.add("aten.sort", lowerHostCall);
  table.add(lowerStableSort);
  table.add("aten.topk", lowerHostCall);
}
