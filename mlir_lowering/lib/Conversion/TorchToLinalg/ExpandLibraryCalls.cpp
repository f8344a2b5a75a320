//===- ExpandLibraryCalls.cpp - Convolutions as linalg --------------------===//
//
// The convolution and its two gradients are sums of products over one index
// space:
//
//   n, g, o, c, x..., k...    (batch, group, output and input channel within
//                              the group, output position, kernel tap)
//
// The products read the padded input at x * stride + k * dilation. For the
// gradient of the input, they read the output's gradient, dilated by the stride
// and padded, and the weight with reversed taps, and are summed over o instead
// of c.
//
//===----------------------------------------------------------------------===//

#include "HostCall.h"
#include "TensorBuilder.h"
#include "torch_ltc/Conversion/TorchToLinalg/Passes.h"
#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Support/UserLocation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_EXPANDLIBRARYCALLSPASS
#include "torch_ltc/Conversion/TorchToLinalg/Passes.h.inc"
} // namespace mlir::torch_ltc

using namespace mlir;
using namespace mlir::torch_ltc;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

namespace {

class Expansion {
public:
  explicit Expansion(ltc::ConvolutionOpInterface call)
      : b(call), tensors(b, call.getLoc()), call(call),
        element(typeOf(call.getInput()).getElementType()),
        sum(element.getIntOrFloatBitWidth() < 32 ? b.getF32Type() : element),
        spatial(typeOf(call.getInput()).getRank() - 2),
        groups(call.getGroups()), stride(call.getStride()),
        padding(call.getPadding()), dilation(call.getDilation()) {}

  SmallVector<Value> run() {
    if (isa<ltc::ConvolutionOp>(call))
      return {forward()};
    if (isa<ltc::ConvolutionBackwardInputOp>(call))
      return {backwardInput()};
    return backwardWeight();
  }

private:
  // Dimensions of the index space.
  AffineExpr dim(int64_t i) { return b.getAffineDimExpr(i); }
  AffineExpr n() { return dim(0); }
  AffineExpr g() { return dim(1); }
  AffineExpr o() { return dim(2); }
  AffineExpr c() { return dim(3); }
  AffineExpr x(int64_t i) { return dim(4 + i); }
  AffineExpr k(int64_t i) { return dim(4 + spatial + i); }

  AffineMap map(ArrayRef<AffineExpr> first,
                llvm::function_ref<AffineExpr(int64_t)> place) {
    SmallVector<AffineExpr> exprs(first);
    for (int64_t i = 0; i < spatial; ++i)
      exprs.push_back(place(i));
    return AffineMap::get(4 + 2 * spatial, 0, exprs, b.getContext());
  }
  AffineMap outputMap() {
    return map({n(), g(), o()}, [&](int64_t i) { return x(i); });
  }
  AffineMap weightMap() {
    return map({g(), o(), c()}, [&](int64_t i) { return k(i); });
  }
  AffineMap inputMap(ArrayRef<int64_t> steps) {
    return map({n(), g(), c()},
               [&](int64_t i) { return x(i) * steps[i] + k(i) * dilation[i]; });
  }

  /// Reshapes the channels, dimension `position`, to [groups, channels per
  /// group].
  Value split(Value value, int64_t position) {
    SmallVector<int64_t> sizes(typeOf(value).getShape());
    sizes[position] /= groups;
    sizes.insert(sizes.begin() + position, groups);
    return tensors.reshape(value, sizes);
  }

  /// Inserts the elements of `value` (with split channels) into zeros of the
  /// spatial sizes `sizes`, at `low` and every `steps`-th position after it.
  /// Drops elements that would be outside.
  Value place(Value value, ArrayRef<int64_t> low, ArrayRef<int64_t> steps,
              ArrayRef<int64_t> sizes);
  Value sumOfProducts(ArrayRef<int64_t> resultSizes, Value left, Value right,
                      AffineMap leftMap, AffineMap rightMap,
                      AffineMap resultMap);
  Value padInput(Value input);
  Value reverseTaps(Value weight);
  Value forward();
  Value backwardInput();
  SmallVector<Value> backwardWeight();

  ArrayRef<int64_t> sizesOf(Value value) { return typeOf(value).getShape(); }

  OpBuilder b;
  TensorBuilder tensors;
  ltc::ConvolutionOpInterface call;
  Type element, sum;
  int64_t spatial, groups;
  ArrayRef<int64_t> stride, padding, dilation;
};

struct ExpandLibraryCallsPass
    : torch_ltc::impl::ExpandLibraryCallsPassBase<ExpandLibraryCallsPass> {
  void runOnOperation() override {
    // Remove the checks. No access is out of bounds, because lowerings also
    // clamp checked indices.
    getOperation()->walk([](ltc::CheckBoundsOp check) {
      check.replaceAllUsesWith(check.getIndices());
      check.erase();
    });
    getOperation()->walk([](ltc::ConvolutionOpInterface call) {
      call->replaceAllUsesWith(Expansion(call).run());
      call->erase();
    });
    getOperation()->walk([&](ltc::HostCallOp call) { expandHost(call); });
  }

  void expandHost(ltc::HostCallOp call) {
    OpBuilder builder(call);
    if (isHostMaskedScatter(call)) {
      call->replaceAllUsesWith(
          ValueRange{expandHostMaskedScatter(builder, call)});
      return call->erase();
    }
    if (!isHostSort(call)) {
      call.emitError() << call.getCallee()
                       << " is computed by PyTorch's own kernel and has no "
                          "form in linalg"
                       << userLocationSuffix(call.getLoc());
      return signalPassFailure();
    }
    call->replaceAllUsesWith(expandHostSort(builder, call));
    call->erase();
  }
};
} // namespace

Value Expansion::place(Value value, ArrayRef<int64_t> low,
                       ArrayRef<int64_t> steps, ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> kept(typeOf(value).getShape()), full(kept);
  SmallVector<int64_t> from(full.size(), 0), at(full.size(), 0),
      step(full.size(), 1), ones(full.size(), 1);
  for (int64_t i = 0, d = full.size() - spatial; i < spatial; ++i, ++d) {
    // The first and the last element that lie inside the result.
    from[d] = low[i] < 0 ? llvm::divideCeil(-low[i], steps[i]) : 0;
    int64_t last = (sizes[i] - 1 - low[i]) / steps[i];
    kept[d] = std::min(full[d] - 1, last) - from[d] + 1;
    at[d] = low[i] + from[d] * steps[i];
    step[d] = steps[i];
    full[d] = sizes[i];
  }
  if (typeOf(value).getShape() == ArrayRef(full) &&
      llvm::all_of(low, [](int64_t zeros) { return zeros == 0; }))
    return value;
  Value inside = tensors.slice(value, from, kept, ones);
  return tensors.insert(inside, tensors.zeros(full, element), at, step);
}

Value Expansion::sumOfProducts(ArrayRef<int64_t> sizes, Value left, Value right,
                               AffineMap leftMap, AffineMap rightMap,
                               AffineMap resultMap) {
  SmallVector<utils::IteratorType> iterators(4 + 2 * spatial,
                                             utils::IteratorType::reduction);
  for (AffineExpr expr : resultMap.getResults())
    iterators[cast<AffineDimExpr>(expr).getPosition()] =
        utils::IteratorType::parallel;
  auto widen = [&](OpBuilder &nested, Location loc, Value value) -> Value {
    return sum == element ? value
                          : arith::ExtFOp::create(nested, loc, sum, value);
  };
  Value zeros = tensors.zeros(sizes, sum);
  auto generic = linalg::GenericOp::create(
      b, tensors.loc, zeros.getType(), ValueRange{left, right},
      ValueRange{zeros}, ArrayRef<AffineMap>{leftMap, rightMap, resultMap},
      iterators, [&](OpBuilder &nested, Location loc, ValueRange values) {
        Value product =
            arith::MulFOp::create(nested, loc, widen(nested, loc, values[0]),
                                  widen(nested, loc, values[1]));
        Value total = arith::AddFOp::create(nested, loc, values[2], product);
        linalg::YieldOp::create(nested, loc, total);
      });
  Value result = generic.getResult(0);
  return sum == element ? result : tensors.convert(result, sum, element);
}

/// Splits the input's channels and adds `padding` zeros at both ends of each
/// spatial dimension.
Value Expansion::padInput(Value input) {
  SmallVector<int64_t> sizes(typeOf(input).getShape().drop_front(2)), ones;
  for (int64_t i = 0; i < spatial; ++i)
    sizes[i] += 2 * padding[i];
  ones.assign(spatial, 1);
  return place(split(input, 1), padding, ones, sizes);
}

Value Expansion::reverseTaps(Value weight) {
  ArrayRef<int64_t> sizes = typeOf(weight).getShape();
  return tensors.fromIndices(
      sizes, element, [&](OpBuilder &nested, Location loc, ValueRange indices) {
        SmallVector<Value> from(indices.take_front(2));
        for (size_t i = 2; i < indices.size(); ++i) {
          Value last =
              arith::ConstantIndexOp::create(nested, loc, sizes[i] - 1);
          from.push_back(arith::SubIOp::create(nested, loc, last, indices[i]));
        }
        return tensor::ExtractOp::create(nested, loc, weight, from);
      });
}

Value Expansion::forward() {
  SmallVector<int64_t> sizes(sizesOf(call.getOutput()));
  SmallVector<int64_t> splitSizes(sizes);
  splitSizes[1] /= groups;
  splitSizes.insert(splitSizes.begin() + 1, groups);
  Value result = sumOfProducts(splitSizes, padInput(call.getInput()),
                               split(call.getWeight(), 0), inputMap(stride),
                               weightMap(), outputMap());
  result = tensors.reshape(result, sizes);
  if (!call.getBias())
    return result;
  SmallVector<int64_t> biasSizes(spatial + 1, 1);
  biasSizes[0] = sizes[1];
  Value bias = tensors.reshape(call.getBias(), biasSizes);
  return tensors.elementwise(
      sizes, {element}, {result, bias},
      [&](OpBuilder &nested, Location loc, ValueRange values) {
        Value total = arith::AddFOp::create(nested, loc, values[0], values[1]);
        return SmallVector<Value>{total};
      })[0];
}

SmallVector<Value> Expansion::backwardWeight() {
  Value gradient = call.getOutput();
  SmallVector<int64_t> sizes(sizesOf(call.getWeight()));
  SmallVector<int64_t> splitSizes(sizes);
  splitSizes[0] /= groups;
  splitSizes.insert(splitSizes.begin(), groups);
  Value result =
      sumOfProducts(splitSizes, split(gradient, 1), padInput(call.getInput()),
                    outputMap(), inputMap(stride), weightMap());
  SmallVector<Value> results{tensors.reshape(result, sizes)};
  if (!call.getBias())
    return results;
  SmallVector<int64_t> dims{0};
  llvm::append_range(dims, llvm::seq<int64_t>(2, 2 + spatial));
  Value zero =
      arith::ConstantOp::create(b, tensors.loc, b.getZeroAttr(element));
  results.push_back(tensors.reduce(
      gradient, dims, zero,
      [](OpBuilder &nested, Location loc, ValueRange in, ValueRange total) {
        Value next = arith::AddFOp::create(nested, loc, total[0], in[0]);
        return SmallVector<Value>{next};
      })[0]);
  return results;
}

Value Expansion::backwardInput() {
  SmallVector<int64_t> sizes(sizesOf(call.getInput()));
  ArrayRef<int64_t> taps = sizesOf(call.getWeight()).drop_front(2);
  SmallVector<int64_t> low, spread, ones(spatial, 1);
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t reach = dilation[i] * (taps[i] - 1);
    low.push_back(reach - padding[i]);
    spread.push_back(sizes[2 + i] + reach);
  }
  // `gradient` is [n, g, o, ...]; the sum reads it at x + k * dilation.
  Value gradient = place(split(call.getOutput(), 1), low, stride, spread);
  AffineMap gradientMap = map(
      {n(), g(), o()}, [&](int64_t i) { return x(i) + k(i) * dilation[i]; });
  Value weight = split(reverseTaps(call.getWeight()), 0);
  SmallVector<int64_t> splitSizes(sizes);
  splitSizes[1] /= groups;
  splitSizes.insert(splitSizes.begin() + 1, groups);
  Value result =
      sumOfProducts(splitSizes, gradient, weight, gradientMap, weightMap(),
                    map({n(), g(), c()}, [&](int64_t i) { return x(i); }));
  return tensors.reshape(result, sizes);
}
