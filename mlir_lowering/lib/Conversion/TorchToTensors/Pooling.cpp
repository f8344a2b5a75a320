//===- Pooling.cpp - Poolings and their gradients on tensors --------------===//
//
// A pooling combines one slice of the padded input for each position in the
// window: element o of the slice at position k is input o * stride - padding +
// k * dilation. A gradient op adds each slice's share to the slice's inputs.
//
//===----------------------------------------------------------------------===//

#include "TensorLowering.h"

#include "../TorchToLinalg/PoolingWindow.h"

#include "torch_ltc/Dialect/Torch/TorchOps_pooling.h"

#include <limits>

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

namespace {
class Windows {
public:
  Windows(TensorLowering &op, const PoolingGeometry &geometry)
      : op(op), geometry(geometry) {
    for (const PoolingDim &dim : geometry.dims) {
      places *= dim.kernel;
      outputSizes.push_back(dim.output);
    }
  }

  int64_t getPlaces() const { return places; }

  /// The input, padded to all positions that windows reach.
  Value padded(Value input, TypedAttr scalar) const {
    SmallVector<int64_t> low = leadingZeros(), high = low, interior = low;
    for (const PoolingDim &dim : geometry.dims) {
      low.push_back(dim.padding);
      high.push_back(reach(dim) - dim.input - dim.padding);
      interior.push_back(0);
    }
    return op.target.pad(input, low, high, interior, scalar);
  }

  /// The slice of `padded` at one position of the window.
  Value slice(Value padded, int64_t place) const {
    SmallVector<int64_t> offsets = leadingZeros(), strides(offsets.size(), 1);
    SmallVector<int64_t> sizes(
        TensorTarget::sizesOf(padded).take_front(geometry.leading));
    for (auto [dim, k] : llvm::zip(geometry.dims, inWindow(place))) {
      offsets.push_back(k * dim.dilation);
      sizes.push_back(dim.output);
      strides.push_back(dim.stride);
    }
    return op.target.slice(padded, offsets, sizes, strides);
  }

  /// A tensor of the input's sizes with the slice's elements at their input
  /// positions and zeros elsewhere; elements in the padding are dropped.
  Value spread(Value slice, int64_t place, Type dtype) const {
    SmallVector<int64_t> low = leadingZeros(), high = low, interior = low;
    for (auto [dim, k] : llvm::zip(geometry.dims, inWindow(place))) {
      int64_t first = k * dim.dilation - dim.padding;
      int64_t last = first + (dim.output - 1) * dim.stride;
      low.push_back(first);
      high.push_back(dim.input - 1 - last);
      interior.push_back(dim.stride - 1);
    }
    return op.target.pad(slice, low, high, interior, op.scalar(dtype, 0));
  }

  /// The positions of the slice's elements in the flattened spatial input, in
  /// row-major order of the spatial output; -1 for those in the padding.
  SmallVector<int64_t> flatPositions(int64_t place) const {
    SmallVector<int64_t> positions{0};
    for (auto [dim, k] : llvm::zip(geometry.dims, inWindow(place))) {
      SmallVector<int64_t> next;
      for (int64_t outer : positions)
        for (int64_t o = 0; o < dim.output; ++o) {
          int64_t i = o * dim.stride - dim.padding + k * dim.dilation;
          bool inside = outer >= 0 && i >= 0 && i < dim.input;
          next.push_back(inside ? outer * dim.input + i : -1);
        }
      positions = std::move(next);
    }
    return positions;
  }

  ArrayRef<int64_t> getOutputSizes() const { return outputSizes; }

private:
  static int64_t reach(const PoolingDim &dim) {
    return (dim.output - 1) * dim.stride + (dim.kernel - 1) * dim.dilation + 1;
  }
  SmallVector<int64_t> leadingZeros() const {
    return SmallVector<int64_t>(geometry.leading, 0);
  }
  SmallVector<int64_t> inWindow(int64_t place) const {
    SmallVector<int64_t> result(geometry.dims.size());
    for (size_t i = result.size(); i-- > 0;) {
      result[i] = place % geometry.dims[i].kernel;
      place /= geometry.dims[i].kernel;
    }
    return result;
  }

  TensorLowering &op;
  const PoolingGeometry &geometry;
  SmallVector<int64_t> outputSizes;
  int64_t places = 1;
};
} // namespace

//===----------------------------------------------------------------------===//
// Maxima
//===----------------------------------------------------------------------===//

/// The greatest element of each window and its position. As in torch, NaN is
/// the greatest element, and the last NaN determines the position. If all
/// elements are -inf, the position is that of the first one outside the
/// padding.
static LogicalResult maxPool(TensorLowering &op, Value self,
                             const PoolingGeometry &geometry) {
  Windows windows(op, geometry);
  Type dtype = op.dtype(self), i64 = op.builder.getI64Type();
  Type signedI64 =
      IntegerType::get(op.builder.getContext(), 64, IntegerType::Signed);
  TypedAttr lowest;
  if (isa<FloatType>(dtype))
    lowest = op.scalar(dtype, -std::numeric_limits<double>::infinity());
  else
    lowest = op.builder.getIntegerAttr(
        storageTypeOf(dtype),
        isUnsigned(dtype)
            ? APInt::getZero(dtype.getIntOrFloatBitWidth())
            : APInt::getSignedMinValue(dtype.getIntOrFloatBitWidth()));
  SmallVector<int64_t> first = windows.flatPositions(0);
  for (int64_t place = 1; place < windows.getPlaces(); ++place)
    for (auto [known, position] :
         llvm::zip(first, windows.flatPositions(place)))
      if (known < 0)
        known = position;
  Value input = windows.padded(op.tensor(self), lowest);
  SmallVector<int64_t> sizes(op.resultSizes());
  Value best = op.target.splat(sizes, lowest);
  Value where = op.target.broadcast(
      op.constantIntegers(windows.getOutputSizes(), first, i64), sizes);
  for (int64_t place = 0; place < windows.getPlaces(); ++place) {
    Value candidate = windows.slice(input, place);
    Value positions = op.constantIntegers(windows.getOutputSizes(),
                                          windows.flatPositions(place), i64);
    auto isBetter = [&](OpBuilder &nested, Value x, Value old) {
      ScalarBuilder s(nested, op.loc, dtype);
      Value better = s.compare(Comparison::gt, x, old);
      return s.isFloat() ? s.logicalOr(better, s.isNan(x)) : better;
    };
    Value better =
        op.compute(sizes, {candidate, best},
                   [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
                     return isBetter(nested, elements[0], elements[1]);
                   });
    best = op.select(better, candidate, best);
    if (op.isResultUsed(1))
      where =
          op.compute(sizes, {better, positions, where},
                     [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
                       return ScalarBuilder(nested, op.loc, signedI64)
                           .select(elements[0], elements[1], elements[2]);
                     });
  }
  return op.replaceWith({best, where});
}

/// `gradOutput` and `indices` are arguments of the op.
static LogicalResult lowerMaxBackward(TensorLowering &op, Value gradOutput,
                                      Value indices,
                                      const PoolingGeometry &geometry) {
  Windows windows(op, geometry);
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  Value gradient = op.operandAs(gradOutput, compute);
  SmallVector<int64_t> sizes(op.sizes(gradOutput));
  Value sum = op.zeros(op.resultSizes(), compute);
  for (int64_t place = 0; place < windows.getPlaces(); ++place) {
    Value positions = op.constantIntegers(windows.getOutputSizes(),
                                          windows.flatPositions(place),
                                          op.builder.getI64Type());
    Value share =
        op.compute(sizes, {op.tensor(indices), positions, gradient},
                   [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
                     ScalarBuilder s(nested, op.loc, compute);
                     Value isSource =
                         s.compare(Comparison::eq, elements[0], elements[1]);
                     return s.select(isSource, elements[2], s.integer(0));
                   });
    sum = op.add(sum, windows.spread(share, place, compute), compute);
  }
  return op.replaceWith(op.convert(sum, compute, dtype));
}

//===----------------------------------------------------------------------===//
// Averages
//===----------------------------------------------------------------------===//

/// The divisor of each window's sum: `divisor` if it is given, otherwise the
/// number of the window's positions in the input and, if `countPadding`, in the
/// padding.
static SmallVector<double> windowSizes(const PoolingGeometry &geometry,
                                       bool countPadding,
                                       std::optional<int64_t> divisor) {
  SmallVector<double> counts{1};
  for (const PoolingDim &dim : geometry.dims) {
    SmallVector<double> next;
    for (double outer : counts)
      for (int64_t o = 0; o < dim.output; ++o) {
        int64_t start = o * dim.stride - dim.padding;
        int64_t end = std::min(start + dim.kernel, dim.input + dim.padding);
        if (!countPadding) {
          start = std::max<int64_t>(start, 0);
          end = std::min(end, dim.input);
        }
        next.push_back(outer * static_cast<double>(end - start));
      }
    counts = std::move(next);
  }
  if (divisor)
    counts.assign(counts.size(), static_cast<double>(*divisor));
  return counts;
}

/// Divides each element of `tensor` by its window's divisor.
static Value divideByCount(TensorLowering &op, Value tensor,
                           const PoolingGeometry &geometry, bool countPadding,
                           std::optional<int64_t> divisor, Type compute) {
  SmallVector<double> counts = windowSizes(geometry, countPadding, divisor);
  SmallVector<int64_t> sizes;
  for (const PoolingDim &dim : geometry.dims)
    sizes.push_back(dim.output);
  SmallVector<APFloat> values;
  for (double count : counts)
    values.push_back(
        cast<FloatAttr>(op.builder.getFloatAttr(compute, count)).getValue());
  Value count = op.target.constant(
      DenseElementsAttr::get(RankedTensorType::get(sizes, compute), values));
  return op.compute(TensorTarget::sizesOf(tensor), {tensor, count},
                    [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
                      return ScalarBuilder(nested, op.loc, compute)
                          .div(elements[0], elements[1]);
                    });
}

static LogicalResult lowerAverage(TensorLowering &op, Value self,
                                  const PoolingGeometry &geometry,
                                  bool countPadding,
                                  std::optional<int64_t> divisor) {
  if (!isa<FloatType>(op.dtype(self)))
    return op.fail("its dtype isn't a float");
  Windows windows(op, geometry);
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  Value input =
      windows.padded(op.operandAs(self, compute), op.scalar(compute, 0));
  Value sum = windows.slice(input, 0);
  for (int64_t place = 1; place < windows.getPlaces(); ++place)
    sum = op.add(sum, windows.slice(input, place), compute);
  Value mean = divideByCount(op, sum, geometry, countPadding, divisor, compute);
  return op.replaceWith(op.convert(mean, compute, dtype));
}

static LogicalResult lowerAverageBackward(TensorLowering &op, Value gradOutput,
                                          const PoolingGeometry &geometry,
                                          bool countPadding,
                                          std::optional<int64_t> divisor) {
  if (!isa<FloatType>(op.dtype(gradOutput)))
    return op.fail("its dtype isn't a float");
  Windows windows(op, geometry);
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  Value share = divideByCount(op, op.operandAs(gradOutput, compute), geometry,
                              countPadding, divisor, compute);
  Value sum = windows.spread(share, 0, compute);
  for (int64_t place = 1; place < windows.getPlaces(); ++place)
    sum = op.add(sum, windows.spread(share, place, compute), compute);
  return op.replaceWith(op.convert(sum, compute, dtype));
}

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

static LogicalResult lowerMaxPool(TensorLowering &op,
                                  AtenMaxPool2dWithIndicesOp args) {
  Value self = args.getSelf();
  return maxPool(
      op, self,
      PoolingGeometry::read(op, args, op.sizes(self), op.resultSizes()));
}

static LogicalResult
lowerMaxPoolBackward(TensorLowering &op,
                     AtenMaxPool2dWithIndicesBackwardOp args) {
  Value gradOutput = args.getGradOutput();
  return lowerMaxBackward(op, gradOutput, args.getIndices(),
                          PoolingGeometry::read(op, args,
                                                op.sizes(args.getSelf()),
                                                op.sizes(gradOutput)));
}

static LogicalResult lowerAveragePool(TensorLowering &op,
                                      AtenAvgPool2dOp args) {
  Value self = args.getSelf();
  return lowerAverage(
      op, self,
      PoolingGeometry::read(op, args, op.sizes(self), op.resultSizes()),
      op.boolean(args.getCountIncludePad()),
      op.optionalInteger(args.getDivisorOverride()));
}

static LogicalResult lowerAveragePoolBackward(TensorLowering &op,
                                              AtenAvgPool2dBackwardOp args) {
  Value gradOutput = args.getGradOutput();
  return lowerAverageBackward(op, gradOutput,
                              PoolingGeometry::read(op, args,
                                                    op.sizes(args.getSelf()),
                                                    op.sizes(gradOutput)),
                              op.boolean(args.getCountIncludePad()),
                              op.optionalInteger(args.getDivisorOverride()));
}

/// The geometry of an adaptive pooling, as a pooling of equal windows that
/// don't overlap. Emits an error if the windows differ in size.
static FailureOr<PoolingGeometry> readAdaptive(TensorLowering &op,
                                               ArrayRef<int64_t> input,
                                               ArrayRef<int64_t> output) {
  auto geometry = PoolingGeometry::adaptive(input, output);
  for (PoolingDim &dim : geometry.dims) {
    if (dim.output == 0 || dim.input % dim.output != 0)
      return op.fail("its windows differ in size");
    dim.adaptive = false;
    dim.kernel = dim.stride = dim.input / dim.output;
  }
  return geometry;
}

static LogicalResult lowerAdaptiveAverage(TensorLowering &op,
                                          Aten_AdaptiveAvgPool2dOp args) {
  auto geometry = readAdaptive(op, op.sizes(args.getSelf()), op.resultSizes());
  return failed(geometry)
             ? failure()
             : lowerAverage(op, args.getSelf(), *geometry, false, std::nullopt);
}

static LogicalResult
lowerAdaptiveAverageBackward(TensorLowering &op,
                             Aten_AdaptiveAvgPool2dBackwardOp args) {
  auto geometry = readAdaptive(op, op.sizes(args.getSelf()),
                               op.sizes(args.getGradOutput()));
  return failed(geometry)
             ? failure()
             : lowerAverageBackward(op, args.getGradOutput(), *geometry, false,
                                    std::nullopt);
}

static LogicalResult lowerAdaptiveMax(TensorLowering &op,
                                      AtenAdaptiveMaxPool2dOp args) {
  auto geometry = readAdaptive(op, op.sizes(args.getSelf()), op.resultSizes());
  return failed(geometry) ? failure() : maxPool(op, args.getSelf(), *geometry);
}

static LogicalResult
lowerAdaptiveMaxBackward(TensorLowering &op,
                         AtenAdaptiveMaxPool2dBackwardOp args) {
  auto geometry = readAdaptive(op, op.sizes(args.getSelf()),
                               op.sizes(args.getGradOutput()));
  return failed(geometry) ? failure()
                          : lowerMaxBackward(op, args.getGradOutput(),
                                             args.getIndices(), *geometry);
}

void torch_ltc::populatePoolingTensorLowerings(TensorLoweringTable &table) {
  table.add(lowerMaxPool);
  table.add(lowerMaxPoolBackward);
  table.add(lowerAveragePool);
  table.add(lowerAveragePoolBackward);
  table.add(lowerAdaptiveAverage);
  table.add(lowerAdaptiveAverageBackward);
  table.add(lowerAdaptiveMax);
  table.add(lowerAdaptiveMaxBackward);
}
