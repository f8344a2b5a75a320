//===- Scatter.cpp - Writes at positions that a tensor contains -----------===//
//
// Scatters become serial loops: if a position occurs twice, the order of the
// writes matters (the last write wins, and sums of floats aren't associative).
//
//===----------------------------------------------------------------------===//

#include "AdvancedIndex.h"
#include "HostCall.h"
#include "OpArguments.h"

#include "torch_ltc/Dialect/Ltc/SizeOrder.h"
#include "torch_ltc/Dialect/Torch/TorchOps_indexing.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

/// Combines the existing element with a new one.
using Combine = Value (*)(ScalarBuilder &, Value there, Value scalar);

static Value combineReplace(ScalarBuilder &, Value, Value scalar) {
  return scalar;
}
static Value combineAdd(ScalarBuilder &s, Value there, Value scalar) {
  return s.add(there, scalar);
}
static Value combineMultiply(ScalarBuilder &s, Value there, Value scalar) {
  return s.mul(there, scalar);
}
static Value combineMaximum(ScalarBuilder &s, Value there, Value scalar) {
  return s.maximum(there, scalar);
}
static Value combineMinimum(ScalarBuilder &s, Value there, Value scalar) {
  return s.minimum(there, scalar);
}

/// Emits the target's indices and the scalar of one step.
using Step = function_ref<std::pair<SmallVector<Value>, Value>(
    IndexBuilder &, ValueRange position)>;

/// Returns `target` with one element updated for each position in the iteration
/// space `sizes`: `step` selects the element and gives the scalar to combine.
static Value scatter(OpLowering &op, ArrayRef<int64_t> sizes, Value target,
                     Type dtype, Combine combine, Step step) {
  // Return an empty target unchanged: the loops would write to a clamped
  // position.
  if (cast<RankedTensorType>(target.getType()).getNumElements() == 0)
    return target;
  return op.tensors.loop(
      sizes, target,
      [&](OpBuilder &nested, Location loc, ValueRange position, Value carried) {
        IndexBuilder b(nested, loc);
        auto [indices, scalar] = step(b, position);
        if (combine != combineReplace) {
          ScalarBuilder s(nested, loc, dtype);
          scalar = combine(s, b.extract(carried, indices), scalar);
        }
        return b.insert(scalar, carried, indices);
      });
}

//===----------------------------------------------------------------------===//
// scatter and its relatives
//===----------------------------------------------------------------------===//

/// `target[index[i][j]][j]` op= scalar(i, j) for dim 0.
static Value
scatterAlong(OpLowering &op, ScatterPlaces places, Value target, Type dtype,
             Combine combine,
             function_ref<Value(IndexBuilder &, ValueRange)> scalar) {
  ArrayRef<int64_t> sizes = op.sizes(places.self);
  int64_t dim = op.dimension(places.dim, sizes.size());
  int64_t size = sizes.empty() ? 1 : sizes[dim];
  Value index = op.checkBounds(op.tensor(places.index), 0, size);
  return scatter(op, op.sizes(places.index), target, dtype, combine,
                 [&](IndexBuilder &b, ValueRange position) {
                   SmallVector<Value> indices(position);
                   Value element = b.extract(index, position);
                   if (sizes.empty())
                     indices.clear();
                   else
                     indices[dim] = b.fromElement(element, size);
                   return std::pair(indices, scalar(b, position));
                 });
}

/// The dtype in which the sum at one position is computed. 16-bit floats are
/// summed in float32 and rounded once, as in eager's sums of rows: a 16-bit sum
/// would stop growing after a few hundred terms.
static Type sumDtypeOf(Type dtype) {
  return dtype.isF16() || dtype.isBF16() ? Float32Type::get(dtype.getContext())
                                         : dtype;
}

static Value convertElement(IndexBuilder &b, Value element, Type from,
                            Type to) {
  return ScalarBuilder(b.builder, b.loc, to).convert(element, from, to);
}

template <Combine combine, typename OpTy>
static LogicalResult lowerScatterSource(OpLowering &op, OpTy args) {
  Type dtype = op.resultDtype();
  Type wide = combine == combineAdd ? sumDtypeOf(dtype) : dtype;
  Value target = op.tensors.convert(op.tensor(args.getSelf()), dtype, wide);
  Value source = op.tensor(args.getSrc());
  Value result = scatterAlong(
      op, ScatterPlaces(args), target, wide, combine,
      [&](IndexBuilder &b, ValueRange position) {
        return convertElement(b, b.extract(source, position), dtype, wide);
      });
  return op.replaceWith(op.tensors.convert(result, wide, dtype));
}

static LogicalResult lowerScatterValue(OpLowering &op,
                                       AtenScatterValueOp args) {
  NumberOperand value = op.number(args.getValue());
  Value result = scatterAlong(
      op, ScatterPlaces(args), op.tensor(args.getSelf()), op.resultDtype(),
      combineReplace, [&](IndexBuilder &b, ValueRange) {
        return value.materialize(b.builder, b.loc, op.resultDtype());
      });
  return op.replaceWith(result);
}

namespace {
struct ScatterReduction {
  Combine combine;
  Value (*neutral)(ScalarBuilder &);
};
} // namespace

static std::optional<ScatterReduction> findReduction(StringRef name) {
  auto zero = [](ScalarBuilder &s) { return s.integer(0); };
  auto one = [](ScalarBuilder &s) { return s.integer(1); };
  if (name == "sum" || name == "mean" || name == "add")
    return ScatterReduction{combineAdd, zero};
  if (name == "prod" || name == "multiply")
    return ScatterReduction{combineMultiply, one};
  if (name == "amax")
    return ScatterReduction{combineMaximum,
                            [](ScalarBuilder &s) { return s.lowest(); }};
  if (name == "amin")
    return ScatterReduction{combineMinimum,
                            [](ScalarBuilder &s) { return s.highest(); }};
  return std::nullopt;
}

/// Combines `target` with `scalar` at each position that the op writes.
using ScatterScalar =
    function_ref<Value(Value target, Type dtype, Combine,
                       function_ref<Value(IndexBuilder &, ValueRange)> scalar)>;

/// Divides each sum by the number of its addends.
static Value divideByCounts(OpLowering &op, Value sums, bool includeSelf,
                            ScatterScalar scatterScalar) {
  MLIRContext *context = op.builder.getContext();
  Type countDtype = IntegerType::get(context, 64, IntegerType::Signed);
  ScalarBuilder outer(op.builder, op.loc, countDtype);
  Value counts =
      op.tensors.fill(op.resultSizes(), outer.integer(includeSelf ? 1 : 0));
  counts = scatterScalar(
      counts, countDtype, combineAdd, [&](IndexBuilder &b, ValueRange) {
        return ScalarBuilder(b.builder, b.loc, countDtype).integer(1);
      });
  return op.tensors.elementwise(
      op.resultSizes(), op.resultType().getElementType(), {sums, counts},
      [&](OpBuilder &nested, Location loc, ValueRange inputs) {
        ScalarBuilder s(nested, loc, op.resultDtype());
        ScalarBuilder c(nested, loc, countDtype);
        Value count = c.maximum(inputs[1], c.integer(1));
        Value divisor = s.convert(count, countDtype, op.resultDtype());
        return SmallVector<Value>{s.isFloat() ? s.div(inputs[0], divisor)
                                              : s.floorDiv(inputs[0], divisor)};
      })[0];
}

/// Lowers a scatter that combines the values written to the same position by
/// the reduction `name`. If `includeSelf`, the existing element is combined as
/// well. `scalar` emits a written value.
static LogicalResult
reduceInto(OpLowering &op, Value self, StringRef name, bool includeSelf,
           ScatterScalar scatterScalar,
           function_ref<Value(IndexBuilder &, ValueRange)> scalar) {
  std::optional<ScatterReduction> reduction = findReduction(name);
  if (!reduction)
    return op.fail("its reduction is '" + name + "'");
  Type dtype = op.resultDtype();
  Type wide = reduction->combine == combineAdd ? sumDtypeOf(dtype) : dtype;
  Value target = op.tensors.convert(op.tensor(self), dtype, wide);
  if (!includeSelf)
    target = scatterScalar(target, wide, combineReplace,
                           [&](IndexBuilder &b, ValueRange) {
                             ScalarBuilder s(b.builder, b.loc, wide);
                             return reduction->neutral(s);
                           });
  Value result = scatterScalar(target, wide, reduction->combine,
                               [&](IndexBuilder &b, ValueRange position) {
                                 return convertElement(b, scalar(b, position),
                                                       dtype, wide);
                               });
  result = op.tensors.convert(result, wide, dtype);
  if (name == "mean")
    result = divideByCounts(op, result, includeSelf, scatterScalar);
  return op.replaceWith(result);
}

/// scatter_reduce.two, scatter.reduce and, with a number instead of `src`,
/// scatter.value_reduce
template <typename OpTy>
static LogicalResult lowerScatterReduce(OpLowering &op, OpTy args) {
  bool includeSelf = true;
  if constexpr (requires { args.getIncludeSelf(); })
    includeSelf = op.boolean(args.getIncludeSelf());
  return reduceInto(
      op, args.getSelf(), op.string(args.getReduce()), includeSelf,
      [&](Value target, Type dtype, Combine combine,
          function_ref<Value(IndexBuilder &, ValueRange)> scalar) {
        return scatterAlong(op, ScatterPlaces(args), target, dtype, combine,
                            scalar);
      },
      [&](IndexBuilder &b, ValueRange position) {
        if constexpr (requires { args.getSrc(); })
          return b.extract(op.tensor(args.getSrc()), position);
        else
          return op.number(args.getValue())
              .materialize(b.builder, b.loc, op.resultDtype());
      });
}

//===----------------------------------------------------------------------===//
// index_add, index_copy, index_fill
//===----------------------------------------------------------------------===//

/// Writes whole slices along the dimension: for dim 0, `scalar` at (i, j) in
/// `sizes` is combined with the element at (index[i], j). Indices are at least
/// `lower` * size: `lower` is 0, or -1 if indices may count from the end.
static Value
scatterSlices(OpLowering &op, ScatterPlaces places, ArrayRef<int64_t> sizes,
              int64_t lower, Value target, Type dtype, Combine combine,
              function_ref<Value(IndexBuilder &, ValueRange)> scalar) {
  ArrayRef<int64_t> targetSizes = op.sizes(places.self);
  int64_t dim = op.dimension(places.dim, targetSizes.size());
  int64_t size = targetSizes.empty() ? 1 : targetSizes[dim];
  Value index = op.tensors.flatten(
      op.checkBounds(op.tensor(places.index), lower * size, size));
  return scatter(op, sizes, target, dtype, combine,
                 [&](IndexBuilder &b, ValueRange position) {
                   SmallVector<Value> indices(position);
                   if (!indices.empty())
                     indices[dim] =
                         b.fromElement(b.extract(index, position[dim]), size);
                   return std::pair(indices, scalar(b, position));
                 });
}

static LogicalResult lowerIndexAdd(OpLowering &op, AtenIndexAddOp args) {
  NumberOperand alpha = op.number(args.getAlpha());
  Type dtype = op.resultDtype(), wide = sumDtypeOf(dtype);
  Value target = op.tensors.convert(op.tensor(args.getSelf()), dtype, wide);
  Value source = op.tensor(args.getSource());
  Value result = scatterSlices(
      op, ScatterPlaces(args), op.sizes(args.getSource()), /*lower=*/0, target,
      wide, combineAdd, [&](IndexBuilder &b, ValueRange position) {
        Value scalar = b.extract(source, position);
        if (alpha.asDouble() != 1.0) {
          ScalarBuilder s(b.builder, b.loc, dtype);
          scalar = s.mul(alpha.materialize(b.builder, b.loc, dtype), scalar);
        }
        return convertElement(b, scalar, dtype, wide);
      });
  return op.replaceWith(op.tensors.convert(result, wide, dtype));
}

static LogicalResult lowerIndexCopy(OpLowering &op, AtenIndexCopyOp args) {
  Value source = op.tensor(args.getSource());
  Value result =
      scatterSlices(op, ScatterPlaces(args), op.sizes(args.getSource()),
                    /*lower=*/0, op.tensor(args.getSelf()), op.resultDtype(),
                    combineReplace, [&](IndexBuilder &b, ValueRange position) {
                      return b.extract(source, position);
                    });
  return op.replaceWith(result);
}

/// `value` is a number or a rank-0 tensor.
template <typename OpTy>
static LogicalResult lowerIndexFill(OpLowering &op, OpTy args) {
  Value value = args.getValue();
  SmallVector<int64_t> sizes(op.sizes(args.getSelf()));
  if (!sizes.empty())
    sizes[op.dimension(args.getDim(), sizes.size())] =
        op.tensorType(args.getIndex()).getNumElements();
  Type dtype = op.resultDtype();
  Value result = scatterSlices(
      op, ScatterPlaces(args), sizes, /*lower=*/-1, op.tensor(args.getSelf()),
      dtype, combineReplace, [&](IndexBuilder &b, ValueRange) {
        if (!op.isTensor(value))
          return op.number(value).materialize(b.builder, b.loc, dtype);
        ScalarBuilder s(b.builder, b.loc, dtype);
        return s.convert(b.extract(op.tensor(value), {}), op.dtype(value),
                         dtype);
      });
  return op.replaceWith(result);
}

static LogicalResult lowerIndexReduce(OpLowering &op, AtenIndexReduceOp args) {
  return reduceInto(
      op, args.getSelf(), op.string(args.getReduce()),
      op.boolean(args.getIncludeSelf()),
      [&](Value target, Type dtype, Combine combine,
          function_ref<Value(IndexBuilder &, ValueRange)> scalar) {
        return scatterSlices(op, ScatterPlaces(args),
                             op.sizes(args.getSource()),
                             /*lower=*/0, target, dtype, combine, scalar);
      },
      [&](IndexBuilder &b, ValueRange position) {
        return b.extract(op.tensor(args.getSource()), position);
      });
}

/// Indices are positions in the flattened tensor.
static LogicalResult lowerPut(OpLowering &op, AtenPutOp args) {
  int64_t size = op.tensorType(args.getSelf()).getNumElements();
  Value index = op.tensors.flatten(
      op.checkBounds(op.tensor(args.getIndex()), -size, size));
  Value source = op.tensors.flatten(op.tensor(args.getSource()));
  Combine combine =
      op.boolean(args.getAccumulate()) ? combineAdd : combineReplace;
  return op.replaceWith(
      scatter(op, op.tensorType(args.getIndex()).getNumElements(),
              op.tensors.flatten(op.tensor(args.getSelf())), op.resultDtype(),
              combine, [&](IndexBuilder &b, ValueRange position) {
                Value place = b.fromElement(b.extract(index, position), size);
                return std::pair(SmallVector<Value>{place},
                                 b.extract(source, position));
              }));
}

//===----------------------------------------------------------------------===//
// index_put
//===----------------------------------------------------------------------===//

/// Whether the op is `x[mask] = value` with one value, which needs no
/// positions.
static bool isMaskedFill(OpLowering &op, AtenIndexPutOp args) {
  SmallVector<Type> dtypes = op.tensorListDtypes(args.getIndices());
  return dtypes.size() == 1 && dtypes[0] && isBool(dtypes[0]) &&
         op.tensorType(args.getValues()).getNumElements() == 1;
}

static LogicalResult lowerMaskedFill(OpLowering &op, AtenIndexPutOp args) {
  Value mask = op.tensorList(args.getIndices()).front();
  // The mask covers the first dimensions: append dimensions of size 1.
  SmallVector<int64_t> aligned(
      cast<RankedTensorType>(mask.getType()).getShape());
  aligned.resize(op.rank(args.getSelf()), 1);
  bool accumulate = op.boolean(args.getAccumulate());
  Value result = op.tensors.elementwise(
      op.resultSizes(), op.resultType().getElementType(),
      {op.tensor(args.getSelf()), op.tensors.reshape(mask, aligned),
       op.tensors.reshape(op.tensor(args.getValues()), {})},
      [&](OpBuilder &nested, Location loc, ValueRange inputs) {
        ScalarBuilder s(nested, loc, op.resultDtype());
        Value value = accumulate ? s.add(inputs[0], inputs[2]) : inputs[2];
        return SmallVector<Value>{s.select(inputs[1], value, inputs[0])};
      })[0];
  return op.replaceWith(result);
}

static LogicalResult lowerIndexPut(OpLowering &op, AtenIndexPutOp args) {
  if (isMaskedFill(op, args))
    return lowerMaskedFill(op, args);
  FailureOr<AdvancedIndex> index =
      AdvancedIndex::read(op, args.getIndices(), op.sizes(args.getSelf()));
  if (failed(index))
    return failure();
  Combine combine =
      op.boolean(args.getAccumulate()) ? combineAdd : combineReplace;
  Value result = scatter(
      op, index->getSizes(), op.tensor(args.getSelf()), op.resultDtype(),
      combine, [&](IndexBuilder &b, ValueRange position) {
        SmallVector<Value> elements;
        for (Value tensor : index->getTensors())
          elements.push_back(extractBroadcast(b, tensor, position));
        return std::pair(
            index->locate(b, position, elements),
            extractBroadcast(b, op.tensor(args.getValues()), position));
      });
  return op.replaceWith(result);
}

//===----------------------------------------------------------------------===//
// masked_scatter
//===----------------------------------------------------------------------===//

/// Writes the n-th element of the source to the n-th true position of the mask.
static Value scatterMasked(TensorBuilder &tensors, OpBuilder &builder,
                           Location loc, Value self, Value mask, Value source,
                           ArrayRef<int64_t> sizes) {
  int64_t available = cast<RankedTensorType>(source.getType()).getNumElements();
  Value target = tensors.flatten(tensors.broadcast(self, sizes));
  if (available == 0)
    return target;
  source = tensors.flatten(source);
  mask = tensors.flatten(tensors.broadcast(mask, sizes));
  IndexBuilder outer(builder, loc);
  auto loop = scf::ForOp::create(
      builder, loc, outer.constant(0),
      outer.constant(ShapedType::getNumElements(sizes)), outer.constant(1),
      ValueRange{target, outer.constant(0)},
      [&](OpBuilder &nested, Location loc, Value position, ValueRange carried) {
        IndexBuilder b(nested, loc);
        Value chosen = b.extract(mask, position);
        Value next = b.min(carried[1], b.constant(available - 1));
        Value scalar = b.select(chosen, b.extract(source, next),
                                b.extract(carried[0], position));
        Value count = b.select(chosen, b.add(carried[1], 1), carried[1]);
        Value written = b.insert(scalar, carried[0], position);
        scf::YieldOp::create(nested, loc, ValueRange{written, count});
      });
  return loop.getResult(0);
}

/// If the source may be too short, calls PyTorch's kernel, which then raises
/// an error. The source of a gradient may always be too short: it has one
/// element for each true position of the mask. In a program for all sizes,
/// stand-ins don't show whether the source is long enough.
static LogicalResult lowerMaskedScatter(OpLowering &op,
                                        AtenMaskedScatterOp args) {
  int64_t available = op.tensorType(args.getSource()).getNumElements();
  int64_t positions = op.resultType().getNumElements();
  if (available < positions || isForAllSizes(op.op))
    return lowerHostCall(op);
  return op.replaceWith(
      scatterMasked(op.tensors, op.builder, op.loc, op.tensor(args.getSelf()),
                    op.tensor(args.getMask()), op.tensor(args.getSource()),
                    op.resultSizes()));
}

bool torch_ltc::isHostMaskedScatter(ltc::HostCallOp call) {
  return call.getCallee() == "aten::masked_scatter";
}

Value torch_ltc::expandHostMaskedScatter(OpBuilder &builder,
                                         ltc::HostCallOp call) {
  TensorBuilder tensors(builder, call.getLoc());
  auto type = cast<RankedTensorType>(call.getResult(0).getType());
  Value result =
      scatterMasked(tensors, builder, call.getLoc(), call.getOperand(0),
                    call.getOperand(1), call.getOperand(2), type.getShape());
  return tensors.reshape(result, type.getShape());
}

void torch_ltc::populateScatterLowerings(LoweringTable &table) {
  table.add(lowerScatterSource<combineReplace, AtenScatterSrcOp>);
  table.add(lowerScatterValue);
  table.add(lowerScatterSource<combineAdd, AtenScatterAddOp>);
  table.add(lowerScatterReduce<AtenScatterReduceTwoOp>);
  table.add(lowerScatterReduce<AtenScatterReduceOp>);
  table.add(lowerScatterReduce<AtenScatterValueReduceOp>);
  table.add(lowerIndexReduce);
  table.add(lowerPut);
  table.add(lowerIndexAdd);
  table.add(lowerIndexCopy);
  table.add(lowerIndexFill<AtenIndexFillIntScalarOp>);
  table.add(lowerIndexFill<AtenIndexFillIntTensorOp>);
  table.add(lowerIndexPut);
  table.add(lowerMaskedScatter);
}
