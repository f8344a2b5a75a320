//===- OpArguments.h - Arguments of torch ops, decoded ----------*- C++ -*-===//
//
// Decodes the arguments of ops, for the lowerings to linalg and for those to
// TOSA and StableHLO.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_OPARGUMENTS_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_OPARGUMENTS_H

#include "OpLowering.h"

#include "torch_ltc/Dialect/Torch/ReshapeOps.h"

namespace mlir::torch_ltc {

/// The arguments of a convolution. Each list has one element for each spatial
/// dimension.
struct ConvolutionArguments {
  SmallVector<int64_t> stride, padding, dilation;
  bool transposed;
  int64_t groups;

  template <typename OpTy>
  ConvolutionArguments(const OpLowering &op, OpTy args)
      : stride(op.integers(args.getStride())),
        padding(op.integers(args.getPadding())),
        dilation(op.integers(args.getDilation())),
        transposed(op.boolean(args.getTransposed())),
        groups(op.integer(args.getGroups())) {
    for (SmallVector<int64_t> *list : {&stride, &padding, &dilation})
      if (list->size() == 1)
        list->assign(op.rank(args.getInput()) - 2, list->front());
  }
  size_t spatialRank() const { return stride.size(); }
};

/// The dimensions that a reduction reduces: those in its argument dim, or all.
template <typename OpTy>
SmallVector<int64_t> reducedDims(const OpLowering &op, OpTy args) {
  int64_t rank = op.rank(args.getSelf());
  if constexpr (requires { args.getDim(); })
    if (!op.isNone(args.getDim()))
      return op.dimensions(args.getDim(), rank);
  return llvm::to_vector(llvm::seq<int64_t>(0, rank));
}

/// The order of dims that a permute, transpose or t makes: result dimension i
/// is dimension `order[i]`.
SmallVector<int64_t> permutationOf(const OpLowering &op);

/// repeat: each dimension is split into [1, size], and then broadcast to
/// [repeats, size].
struct RepeatedSizes {
  SmallVector<int64_t> split, repeated;

  RepeatedSizes(const OpLowering &op, torch::AtenRepeatOp args);
};

/// The arguments that determine where a scatter writes along a dimension.
struct ScatterPlaces {
  Value self, dim, index;

  template <typename OpTy>
  explicit ScatterPlaces(OpTy args)
      : self(args.getSelf()), dim(args.getDim()), index(args.getIndex()) {}
};

/// Adds the lowerings of views that only change sizes: `replaceWith` reshapes
/// the operand to the result type.
template <typename Lowering>
void addReshapes(LoweringTableOf<Lowering> &table) {
  torch::forEachReshapeOp([&]<typename OpTy>() {
    table.add(+[](Lowering &op, OpTy args) {
      return op.replaceWith(op.tensor(args.getSelf()));
    });
  });
}

/// Constructors of zeros and ones. `empty` is filled with 0, so that no run
/// depends on earlier contents of memory.
inline constexpr llvm::StringLiteral zeroConstructors[] = {
    "aten.zeros",    "aten.zeros_like",          "aten.new_zeros",
    "aten.zero",     "aten.empty.memory_format", "aten.empty_like",
    "aten.new_empty"};
inline constexpr llvm::StringLiteral oneConstructors[] = {
    "aten.ones", "aten.ones_like", "aten.new_ones"};

/// A slice's start or end, clamped to [0, size]. A negative `index` counts from
/// the end; without an index, `none` is used.
int64_t clampIndex(std::optional<int64_t> index, int64_t none, int64_t size);

/// The tensor arguments that an elementwise op reads element by element, once
/// each. A tensor that isn't broadcastable to the result is excluded, because
/// the scalar builder doesn't read it (for example, log_sigmoid_backward's
/// buffer).
SmallVector<Value> elementwiseTensors(const OpLowering &op);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_OPARGUMENTS_H
