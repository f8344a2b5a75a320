//===- PoolingWindow.cpp - Inputs of a pooled element ---------------------===//

#include "PoolingWindow.h"

#include "torch_ltc/Dialect/Ltc/SizeOrder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// One dimension
//===----------------------------------------------------------------------===//

static Value product(IndexBuilder &b, Value x, int64_t factor) {
  return b.mul(x, factor);
}

WindowRange PoolingDim::inputsOf(IndexBuilder &b, Value position) const {
  Value zero = b.constant(0);
  if (adaptive) {
    Value low = b.floorDiv(product(b, position, input), output);
    Value high = b.ceilDiv(product(b, b.add(position, 1), input), output);
    return {low, high, zero, 1};
  }
  Value base = b.add(b.mul(position, stride), -padding);
  if (padding == 0 && !mayExtend &&
      (output - 1) * stride + (kernel - 1) * dilation < input)
    return {zero, b.constant(kernel), base, dilation};
  Value low = b.max(zero, b.ceilDiv(b.sub(zero, base), dilation));
  Value room = b.ceilDiv(b.sub(b.constant(input), base), dilation);
  return {low, b.min(b.constant(kernel), room), base, dilation};
}

std::pair<Value, Value> PoolingDim::outputsSeeing(IndexBuilder &b,
                                                  Value position) const {
  if (adaptive) {
    Value low = b.floorDiv(product(b, position, output), input);
    Value high = b.ceilDiv(product(b, b.add(position, 1), output), input);
    return {low, high};
  }
  Value shifted = b.add(position, padding);
  Value first = b.ceilDiv(b.add(shifted, -(kernel - 1) * dilation), stride);
  Value end = b.add(b.floorDiv(shifted, stride), 1);
  return {b.max(first, b.constant(0)), b.min(end, b.constant(output))};
}

Value PoolingDim::windowSize(IndexBuilder &b, Value position,
                             bool countPadding) const {
  if (adaptive || !countPadding) {
    WindowRange range = inputsOf(b, position);
    return b.sub(range.high, range.low);
  }
  // With ceil_mode, the last window may extend past the padding. Positions
  // beyond the padding aren't counted.
  Value start = b.add(b.mul(position, stride), -padding);
  Value end = b.min(b.add(start, kernel), b.constant(input + padding));
  return b.sub(end, start);
}

//===----------------------------------------------------------------------===//
// All dimensions
//===----------------------------------------------------------------------===//

static constexpr int64_t kSpatialRank = 2;

static int64_t elementOr(ArrayRef<int64_t> list, size_t i) {
  return list.size() == 1 ? list[0] : list[i];
}

PoolingGeometry
PoolingGeometry::ofWindows(const OpLowering &op, ArrayRef<int64_t> input,
                           ArrayRef<int64_t> output, ArrayRef<int64_t> kernel,
                           ArrayRef<int64_t> stride, ArrayRef<int64_t> padding,
                           ArrayRef<int64_t> dilation, bool ceilMode) {
  bool mayExtend = isForAllSizes(op.op) && ceilMode;
  if (stride.empty())
    stride = kernel;
  PoolingGeometry geometry;
  geometry.leading = static_cast<int64_t>(input.size()) - kSpatialRank;
  for (int64_t i = 0; i < kSpatialRank; ++i)
    geometry.dims.push_back(
        {input[geometry.leading + i], output[geometry.leading + i],
         elementOr(kernel, i), elementOr(stride, i), elementOr(padding, i),
         elementOr(dilation, i), /*adaptive=*/false, mayExtend});
  return geometry;
}

PoolingGeometry PoolingGeometry::adaptive(ArrayRef<int64_t> input,
                                          ArrayRef<int64_t> output) {
  PoolingGeometry geometry;
  geometry.leading = static_cast<int64_t>(input.size()) - kSpatialRank;
  for (size_t i = geometry.leading; i < input.size(); ++i) {
    PoolingDim dim{input[i], output[i]};
    dim.adaptive = true;
    geometry.dims.push_back(dim);
  }
  return geometry;
}

Value PoolingGeometry::flatPosition(IndexBuilder &b, ValueRange spatial) const {
  SmallVector<int64_t> sizes;
  for (const PoolingDim &dim : dims)
    sizes.push_back(dim.input);
  return b.linear(spatial, rowMajorStrides(sizes));
}

Value PoolingGeometry::windowSize(IndexBuilder &b, ValueRange output,
                                  bool countPadding) const {
  Value size;
  for (auto [dim, position] : llvm::zip(dims, output.drop_front(leading))) {
    Value extent = dim.windowSize(b, position, countPadding);
    size =
        size ? arith::MulIOp::create(b.builder, b.loc, size, extent).getResult()
             : extent;
  }
  return size;
}

SmallVector<Value> PoolingGeometry::forEachInput(
    IndexBuilder &b, ValueRange output, ValueRange carried,
    function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange,
                                    ValueRange)>
        body) const {
  SmallVector<WindowRange> ranges;
  SmallVector<Value> lows, highs, steps(dims.size(), b.constant(1));
  for (auto [dim, position] : llvm::zip(dims, output.drop_front(leading))) {
    ranges.push_back(dim.inputsOf(b, position));
    lows.push_back(ranges.back().low);
    highs.push_back(ranges.back().high);
  }
  auto nest = scf::buildLoopNest(
      b.builder, b.loc, lows, highs, steps, carried,
      [&](OpBuilder &nested, Location loc, ValueRange counts,
          ValueRange values) {
        IndexBuilder inner(nested, loc);
        SmallVector<Value> position(output.take_front(leading));
        for (auto [range, count] : llvm::zip(ranges, counts))
          position.push_back(
              inner.add(range.base, inner.mul(count, range.step)));
        SmallVector<Value> results = body(nested, loc, position, values);
        return scf::ValueVector(results.begin(), results.end());
      });
  return llvm::to_vector_of<Value>(nest.results);
}

SmallVector<Value> PoolingGeometry::forEachOutput(
    IndexBuilder &b, ValueRange input, ValueRange carried,
    function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange,
                                    ValueRange)>
        body) const {
  SmallVector<Value> lows, highs, steps(dims.size(), b.constant(1));
  for (auto [dim, position] : llvm::zip(dims, input.drop_front(leading))) {
    auto [low, high] = dim.outputsSeeing(b, position);
    lows.push_back(low);
    highs.push_back(high);
  }
  auto nest = scf::buildLoopNest(
      b.builder, b.loc, lows, highs, steps, carried,
      [&](OpBuilder &nested, Location loc, ValueRange spatial,
          ValueRange values) {
        SmallVector<Value> position(input.take_front(leading));
        llvm::append_range(position, spatial);
        SmallVector<Value> results = body(nested, loc, position, values);
        return scf::ValueVector(results.begin(), results.end());
      });
  return llvm::to_vector_of<Value>(nest.results);
}

SmallVector<Value> torch_ltc::genericIndices(OpBuilder &builder, Location loc,
                                             size_t rank) {
  SmallVector<Value> indices;
  for (size_t dim = 0; dim < rank; ++dim)
    indices.push_back(linalg::IndexOp::create(builder, loc, dim));
  return indices;
}
