//===- JoinInsertions.cpp - Conversion of long insertion chains to joins --===//
//
// A kernel for a chain of insertions (for example, a concatenation, or writes
// `y[i] = v`) has a loop nest for each insertion, and LLVM's compile time grows
// superlinearly with the number of nests. For long chains, this pass determines
// the source of each part of the result instead:
//
// * insertions of contiguous ranges: the result becomes a join of the ranges;
//   each range is written in place by its producer, or copied;
// * insertions at single indices of an inner dimension (for example, a stack):
//   the transposed result becomes a join;
// * other concatenations: the result becomes a tree of short concatenations.
//
// A short chain of contiguous ranges also becomes a join if its result is large
// and only host calls read it.
//
//===----------------------------------------------------------------------===//

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Dialect/Ltc/SizeOrder.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <map>

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_JOININSERTIONS
#include "torch_ltc/Kernels/Passes.h.inc"

namespace {

/// A part of a result: its elements (or indices of a dimension) [begin, end)
/// are those of `source` from `first` on.
struct Piece {
  int64_t begin, end;
  Value source;
  int64_t first;
};

/// The pieces that cover a range; later pieces replace earlier ones.
class Cover {
public:
  void add(Piece piece) {
    if (piece.begin == piece.end)
      return;
    ends.append({piece.begin, piece.end});
    auto it = pieces.lower_bound(piece.begin);
    if (it != pieces.begin()) {
      Piece &before = std::prev(it)->second;
      if (before.end > piece.begin) {
        Piece tail = before;
        before.end = piece.begin;
        if (tail.end > piece.end)
          it = addTail(tail, piece.end);
      }
    }
    while (it != pieces.end() && it->second.begin < piece.end) {
      Piece covered = it->second;
      it = pieces.erase(it);
      if (covered.end > piece.end)
        it = addTail(covered, piece.end);
    }
    pieces[piece.begin] = piece;
  }

  const std::map<int64_t, Piece> &get() const { return pieces; }

  /// The bounds of all pieces. Their order decides which parts remain.
  const SmallVector<int64_t> &getEnds() const { return ends; }

private:
  std::map<int64_t, Piece>::iterator addTail(Piece piece, int64_t begin) {
    piece.first += begin - piece.begin;
    piece.begin = begin;
    return pieces.insert_or_assign(begin, piece).first;
  }

  std::map<int64_t, Piece> pieces; ///< by begin
  SmallVector<int64_t> ends;
};

int64_t elementsOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getNumElements();
}

bool isStatic(tensor::InsertSliceOp insert) {
  auto isKnown = [](ArrayRef<int64_t> values) {
    return llvm::none_of(values, ShapedType::isDynamic);
  };
  return insert.getType().hasStaticShape() &&
         isKnown(insert.getStaticOffsets()) &&
         isKnown(insert.getStaticSizes()) && isKnown(insert.getStaticStrides());
}

/// The number of elements before the inserted box; nullopt if the box isn't
/// contiguous.
std::optional<int64_t> contiguousOffset(tensor::InsertSliceOp insert) {
  int64_t offset = 0;
  bool whole = false;
  for (auto [first, size, stride, full] : llvm::zip_equal(
           insert.getStaticOffsets(), insert.getStaticSizes(),
           insert.getStaticStrides(), insert.getType().getShape())) {
    if ((size > 1 && stride != 1) || (whole && size != full))
      return std::nullopt;
    whole |= size > 1;
    offset = offset * full + first;
  }
  return offset;
}

/// The only dimension that the inserted box doesn't cover completely; nullopt
/// if there are none or several, or if the box is strided.
std::optional<unsigned> insertedDimension(tensor::InsertSliceOp insert) {
  std::optional<unsigned> found;
  auto shape = insert.getType().getShape();
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    if (insert.getStaticStrides()[dim] != 1)
      return std::nullopt;
    if (insert.getStaticSizes()[dim] == shape[dim])
      continue;
    if (found)
      return std::nullopt;
    found = dim;
  }
  return found;
}

class Joiner {
public:
  /// `chain`: all insertions, from `first` to `last`.
  Joiner(ArrayRef<tensor::InsertSliceOp> chain, tensor::InsertSliceOp first,
         tensor::InsertSliceOp last)
      : chain(chain), last(last), builder(last), loc(last.getLoc()),
        type(last.getType()), base(first.getDest()) {}

  /// Returns the replacement of the chain's result, or null if there is none.
  Value run() {
    if (std::optional<Cover> cover = coverByRanges())
      return joinRanges(*cover);
    std::optional<unsigned> dim = insertedDimension(chain.front());
    bool isCommon = dim && llvm::all_of(chain, [&](auto insert) {
                      return insertedDimension(insert) == dim;
                    });
    if (!isCommon)
      return {};
    if (Value joined = joinIndices(*dim))
      return joined;
    return concatenate(*dim);
  }

  /// Like `run`, but only if contiguous ranges cover the whole result.
  Value runIfComplete() {
    std::optional<Cover> cover = coverByRanges();
    if (!cover || llvm::any_of(cover->get(), [&](const auto &entry) {
          return entry.second.source == base;
        }))
      return {};
    return joinRanges(*cover);
  }

private:
  static constexpr size_t kMaxInsertions = 16;

  /// Returns the pieces of the result, or nullopt if an insertion isn't
  /// contiguous.
  std::optional<Cover> coverByRanges() const {
    Cover cover;
    addBase(cover, type.getNumElements(), base);
    for (auto insert : chain) {
      std::optional<int64_t> offset = contiguousOffset(insert);
      if (!offset)
        return std::nullopt;
      Value source = insert.getSource();
      cover.add({*offset, *offset + elementsOf(source), source, 0});
    }
    return cover;
  }

  Value joinRanges(const Cover &cover) {
    return reshape(join(cover, type.getNumElements(), /*unit=*/1),
                   type.getShape());
  }

  /// Builds the result [outer, indices, inner] from a join of [outer, inner]
  /// tensors. Returns null if an insertion covers several indices.
  Value joinIndices(unsigned dim) {
    bool areSingle = llvm::all_of(
        chain, [&](auto insert) { return insert.getStaticSizes()[dim] == 1; });
    if (!areSingle)
      return {};
    int64_t count = type.getDimSize(dim), outer = 1, inner = 1;
    for (auto [i, size] : llvm::enumerate(type.getShape()))
      if (i != dim)
        (i < dim ? outer : inner) *= size;
    Cover cover;
    Value bound = base;
    if (!isUniform(base))
      bound = transpose(reshape(base, {outer, count, inner}));
    addBase(cover, count, bound);
    for (auto insert : chain) {
      int64_t index = insert.getStaticOffsets()[dim];
      cover.add({index, index + 1, insert.getSource(), 0});
    }
    Value joined = join(cover, count, outer * inner);
    Value moved = transpose(reshape(joined, {count, outer, inner}));
    return reshape(moved, type.getShape());
  }

  /// Builds the concatenation of all sources as a tree. Returns null if they
  /// aren't in order or don't cover the whole result.
  Value concatenate(unsigned dim) {
    if (!base.getDefiningOp<tensor::EmptyOp>())
      return {};
    int64_t end = 0;
    SmallVector<Value> parts;
    for (auto insert : chain) {
      if (insert.getStaticOffsets()[dim] != end ||
          insert.getSourceType().getRank() != type.getRank())
        return {};
      end += insert.getStaticSizes()[dim];
      parts.push_back(insert.getSource());
    }
    if (end != type.getDimSize(dim))
      return {};
    while (parts.size() > 1) {
      SmallVector<Value> joined;
      for (size_t i = 0; i < parts.size(); i += kMaxInsertions)
        joined.push_back(
            insertAll(ArrayRef(parts).slice(
                          i, std::min(kMaxInsertions, parts.size() - i)),
                      dim));
      parts = std::move(joined);
    }
    return parts[0];
  }

  Value insertAll(ArrayRef<Value> parts, unsigned dim) {
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = 0;
    for (Value part : parts)
      shape[dim] += cast<RankedTensorType>(part.getType()).getDimSize(dim);
    Value result =
        tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
    SmallVector<int64_t> offsets(shape.size(), 0), ones(shape.size(), 1);
    auto attributes = [&](ArrayRef<int64_t> values) {
      return getAsIndexOpFoldResult(builder.getContext(), values);
    };
    for (Value part : parts) {
      auto sizes = cast<RankedTensorType>(part.getType()).getShape();
      result = tensor::InsertSliceOp::create(
          builder, loc, part, result, attributes(offsets), attributes(sizes),
          attributes(ones));
      offsets[dim] += sizes[dim];
    }
    return result;
  }

  static bool isUniform(Value tensor) {
    Operation *def = tensor.getDefiningOp();
    return def && getRole(def) == OpRole::Clone;
  }

  static void addBase(Cover &cover, int64_t count, Value base) {
    cover.add({0, count, base, 0});
  }

  /// Joins the pieces in order. Each index of a piece has `unit` elements.
  Value join(const Cover &cover, int64_t count, int64_t unit) {
    assumeOrder(last, cover.getEnds());
    SmallVector<Value> parts;
    for (auto &[begin, piece] : cover.get())
      parts.push_back(range(piece, unit));
    if (parts.size() == 1)
      return parts[0];
    auto whole = RankedTensorType::get({count * unit}, type.getElementType());
    return ltc::JoinOp::create(builder, loc, whole, parts);
  }

  Value range(const Piece &piece, int64_t unit) {
    int64_t size = (piece.end - piece.begin) * unit;
    if (Value uniform = uniformRange(piece.source, size))
      return uniform;
    Value flat = reshape(piece.source, {elementsOf(piece.source)});
    if (elementsOf(flat) == size)
      return flat;
    auto attribute = [&](int64_t value) {
      return SmallVector<OpFoldResult>{builder.getIndexAttr(value)};
    };
    return tensor::ExtractSliceOp::create(builder, loc, flat,
                                          attribute(piece.first * unit),
                                          attribute(size), attribute(1));
  }

  /// If `source` is a fill or an undefined tensor, returns a smaller one, which
  /// needs no view of `source`; otherwise null.
  Value uniformRange(Value source, int64_t size) {
    Operation *def = source.getDefiningOp();
    if (!def || !isa<linalg::FillOp, tensor::EmptyOp>(def))
      return {};
    Value range =
        tensor::EmptyOp::create(builder, loc, size, type.getElementType());
    if (auto fill = dyn_cast<linalg::FillOp>(def))
      range = linalg::FillOp::create(builder, loc, fill.value(), range)
                  .getResult(0);
    return range;
  }

  Value reshape(Value tensor, ArrayRef<int64_t> shape) {
    auto from = cast<RankedTensorType>(tensor.getType());
    if (from.getShape() == shape)
      return tensor;
    auto allOf = [](int64_t rank) {
      ReassociationIndices all(llvm::to_vector<2>(llvm::seq<int64_t>(0, rank)));
      return rank ? SmallVector<ReassociationIndices>{all}
                  : SmallVector<ReassociationIndices>();
    };
    Type element = from.getElementType();
    if (from.getRank() != 1) {
      auto flat = RankedTensorType::get({from.getNumElements()}, element);
      tensor = from.getRank() == 0
                   ? tensor::ExpandShapeOp::create(builder, loc, flat, tensor,
                                                   allOf(0))
                         .getResult()
                   : tensor::CollapseShapeOp::create(builder, loc, tensor,
                                                     allOf(from.getRank()))
                         .getResult();
    }
    if (shape.size() == 1)
      return tensor;
    return tensor::ExpandShapeOp::create(builder, loc,
                                         RankedTensorType::get(shape, element),
                                         tensor, allOf(shape.size()));
  }

  /// Exchanges the first two of three dimensions.
  Value transpose(Value tensor) {
    auto from = cast<RankedTensorType>(tensor.getType());
    MLIRContext *context = builder.getContext();
    SmallVector<int64_t> shape(from.getShape());
    std::swap(shape[0], shape[1]);
    Value empty =
        tensor::EmptyOp::create(builder, loc, shape, from.getElementType());
    AffineExpr i, j, k;
    bindDims(context, i, j, k);
    SmallVector<utils::IteratorType> loops(3, utils::IteratorType::parallel);
    return linalg::GenericOp::create(
               builder, loc, empty.getType(), tensor, empty,
               ArrayRef{AffineMap::get(3, 0, {j, i, k}, context),
                        AffineMap::getMultiDimIdentityMap(3, context)},
               loops,
               [](OpBuilder &b, Location l, ValueRange args) {
                 linalg::YieldOp::create(b, l, args[0]);
               })
        .getResult(0);
  }

  ArrayRef<tensor::InsertSliceOp> chain;
  tensor::InsertSliceOp last;
  OpBuilder builder;
  Location loc;
  RankedTensorType type;
  Value base;
};

/// Whether there is a dimension in which the slice and the insertion don't
/// overlap.
bool areDisjoint(tensor::ExtractSliceOp slice, tensor::InsertSliceOp insert) {
  for (unsigned dim = 0; dim < slice.getSourceType().getRank(); ++dim) {
    auto lastOf = [dim](auto op) {
      return op.getStaticOffsets()[dim] +
             (op.getStaticSizes()[dim] - 1) * op.getStaticStrides()[dim];
    };
    auto isBefore = [&](auto a, auto b) {
      int64_t last = lastOf(a), first = b.getStaticOffsets()[dim];
      if (last >= first)
        return false;
      assumeOrder(slice, last, first);
      return true;
    };
    if (isBefore(slice, insert) || isBefore(insert, slice))
      return true;
  }
  return false;
}

/// While the source of the slice is an insertion that the slice doesn't
/// overlap, replaces the source by the insertion's destination.
void bypassInsertions(tensor::ExtractSliceOp slice) {
  while (auto insert =
             slice.getSource().getDefiningOp<tensor::InsertSliceOp>()) {
    if (!areDisjoint(slice, insert))
      return;
    slice.getSourceMutable().assign(insert.getDest());
  }
}

class JoinInsertions : public impl::JoinInsertionsBase<JoinInsertions> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> program = findProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    Block &block = program->getBody().front();
    bool areStatic = llvm::all_of(block.getOps<tensor::InsertSliceOp>(),
                                  [](auto insert) { return isStatic(insert); });
    if (!areStatic)
      return;
    for (auto slice : block.getOps<tensor::ExtractSliceOp>())
      if (llvm::none_of(slice.getStaticOffsets(), ShapedType::isDynamic) &&
          llvm::none_of(slice.getStaticSizes(), ShapedType::isDynamic) &&
          llvm::none_of(slice.getStaticStrides(), ShapedType::isDynamic))
        bypassInsertions(slice);
    // Erase insertions that only these slices have read, because they would
    // interrupt a chain.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
    SmallVector<tensor::InsertSliceOp> ends;
    for (auto insert : block.getOps<tensor::InsertSliceOp>())
      if (!nextOf(insert))
        ends.push_back(insert);
    for (tensor::InsertSliceOp end : ends)
      joinChain(end);
  }

  /// The insertion that continues the chain, or null.
  static tensor::InsertSliceOp nextOf(tensor::InsertSliceOp insert) {
    if (!insert->hasOneUse())
      return {};
    OpOperand &use = *insert->use_begin();
    auto next = dyn_cast<tensor::InsertSliceOp>(use.getOwner());
    return next && &use == &next.getDestMutable() ? next
                                                  : tensor::InsertSliceOp();
  }

  /// Whether the result is large and only passed to host calls (for example, a
  /// bucket of gradients), so that no kernel can read the parts instead.
  static bool isLargeHostOperand(tensor::InsertSliceOp end) {
    constexpr int64_t manyBytes = 32 << 10; // a copy costs as much as a command
    return getTensorBytes(end.getType()) >= manyBytes &&
           llvm::all_of(end->getUsers(), [](Operation *user) {
             return isa<ltc::HostCallOp>(user);
           });
  }

  static void joinChain(tensor::InsertSliceOp end) {
    constexpr size_t fewInsertions = 8;
    SmallVector<tensor::InsertSliceOp> chain{end};
    while (auto previous =
               chain.back().getDest().getDefiningOp<tensor::InsertSliceOp>()) {
      if (nextOf(previous) != chain.back())
        break;
      chain.push_back(previous);
    }
    bool isLong = chain.size() > fewInsertions;
    if (!isLong && !isLargeHostOperand(end))
      return;
    SmallVector<tensor::InsertSliceOp> inOrder(llvm::reverse(chain));
    Joiner joiner(inOrder, inOrder.front(), end);
    Value joined = isLong ? joiner.run() : joiner.runIfComplete();
    if (!joined)
      return;
    end.getResult().replaceAllUsesWith(joined);
    for (tensor::InsertSliceOp insert : chain)
      insert.erase();
  }
};

} // namespace
} // namespace mlir::torch_ltc
