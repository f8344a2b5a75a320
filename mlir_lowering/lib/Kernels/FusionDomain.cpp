//===- FusionDomain.cpp - The common iteration space of fused ops ---------===//

#include "torch_ltc/Kernels/FusionDomain.h"

#include "torch_ltc/Kernels/Program.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// Which ops fit
//===----------------------------------------------------------------------===//

namespace {

/// An affine expression as offset + sum of coefficient * dimension.
struct LinearExpr {
  int64_t offset = 0;
  SmallVector<int64_t> coefficients;
};

std::optional<LinearExpr> asLinear(AffineExpr expr, unsigned dims) {
  LinearExpr result;
  result.coefficients.assign(dims, 0);
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    result.offset = constant.getValue();
    return result;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    result.coefficients[dim.getPosition()] = 1;
    return result;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary || (binary.getKind() != AffineExprKind::Add &&
                  binary.getKind() != AffineExprKind::Mul))
    return std::nullopt;
  auto left = asLinear(binary.getLHS(), dims);
  auto right = asLinear(binary.getRHS(), dims);
  if (!left || !right)
    return std::nullopt;
  if (binary.getKind() == AffineExprKind::Add) {
    result.offset = left->offset + right->offset;
    for (unsigned d = 0; d < dims; ++d)
      result.coefficients[d] = left->coefficients[d] + right->coefficients[d];
    return result;
  }
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (!factor)
    return std::nullopt;
  result.offset = left->offset * factor.getValue();
  for (unsigned d = 0; d < dims; ++d)
    result.coefficients[d] = left->coefficients[d] * factor.getValue();
  return result;
}

bool isLinear(AffineMap map) {
  return map.getNumSymbols() == 0 &&
         llvm::all_of(map.getResults(), [&](AffineExpr expr) {
           return asLinear(expr, map.getNumDims()).has_value();
         });
}

bool isStaticTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() &&
         tensor.getElementType().isIntOrFloat();
}

/// Whether the body has no side effects, and uses tensors only to read elements
/// (tensor.extract) of static ones.
bool isComputingBody(Block &body) {
  bool isFine = true;
  body.walk([&](Operation *op) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      isFine &= isStaticTensor(extract.getTensor().getType());
      return;
    }
    bool usesTensors =
        llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>) ||
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>);
    isFine &=
        !usesTensors && (op->hasTrait<OpTrait::IsTerminator>() ||
                         op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                         isMemoryEffectFree(op));
  });
  return isFine;
}

int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}

} // namespace

bool FusionDomain::isFusible(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.hasDynamicShape())
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    bool isTensor = isStaticTensor(operand.get().getType());
    if (!isTensor && !operand.get().getType().isIntOrFloat())
      return false;
    if (!isLinear(map))
      return false;
    if (op.isDpsInit(&operand) &&
        !map.isProjectedPermutation(/*allowZeroInResults=*/true))
      return false;
  }
  // Reject a parallel loop that isn't in a result's indexing map, because it
  // would write each element of the result several times.
  for (unsigned init = 0; init < op.getNumDpsInits(); ++init) {
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(init));
    for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
      if (kind == utils::IteratorType::parallel && !map.isFunctionOfDim(loop) &&
          op.getStaticLoopRanges()[loop] != 1)
        return false;
  }
  return isComputingBody(*op.getBody());
}

bool mlir::torch_ltc::isUniform(Value tensor) {
  Operation *def = tensor.getDefiningOp();
  if (!def)
    return false;
  DenseElementsAttr elements;
  return isa<linalg::FillOp>(def) ||
         (matchPattern(def, m_Constant(&elements)) && elements.isSplat());
}

//===----------------------------------------------------------------------===//
// Adding ops
//===----------------------------------------------------------------------===//

bool DomainMember::has(unsigned factor) const {
  return llvm::any_of(loops, [&](const FactorRun &run) {
    return llvm::is_contained(run, factor);
  });
}

bool DomainMember::isReduced(unsigned factor) const {
  auto kinds = const_cast<linalg::GenericOp &>(op).getIteratorTypesArray();
  for (auto [loop, run] : llvm::enumerate(loops))
    if (llvm::is_contained(run, factor))
      return kinds[loop] == utils::IteratorType::reduction;
  return false;
}

bool FusionDomain::add(linalg::GenericOp op) {
  SmallVector<FactorRun> loops(op.getNumLoops());
  BitVector isAligned(op.getNumLoops());
  if (!alignLoops(op, loops, isAligned))
    return false;
  alignWithReads(op, loops, isAligned);
  alignBySize(op, loops, isAligned);
  // Reject an op with one factor in two of its loops, because it would read
  // values on a diagonal.
  SmallVector<unsigned> used;
  for (const FactorRun &run : loops)
    used.append(run.begin(), run.end());
  llvm::sort(used);
  if (std::adjacent_find(used.begin(), used.end()) != used.end())
    return false;
  recordReads(op, loops);
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(index));
    Layout layout;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      layout.push_back(dim ? loops[dim.getPosition()] : FactorRun());
    }
    layouts[result] = layout;
  }
  members.push_back({op, std::move(loops)});
  return true;
}

/// Assigns the factors of the domain's values to the op's loops over these
/// values. Returns false if the op reads such a value with tensor.extract, or
/// in loops that don't fit the value's factors.
bool FusionDomain::alignLoops(linalg::GenericOp op,
                              SmallVectorImpl<FactorRun> &loops,
                              BitVector &isAligned) {
  bool isFine = true;
  op.getBody()->walk([&](tensor::ExtractOp extract) {
    isFine &= !layouts.contains(extract.getTensor());
  });
  for (OpOperand &operand : op->getOpOperands()) {
    auto layout = layouts.find(operand.get());
    if (layout == layouts.end())
      continue;
    isFine = isFine && alignWithValue(op.getMatchingIndexingMap(&operand),
                                      layout->second, loops, isAligned);
  }
  return isFine;
}

bool FusionDomain::alignWithValue(AffineMap map, const Layout &layout,
                                  SmallVectorImpl<FactorRun> &loops,
                                  BitVector &isAligned) {
  if (!map.isProjectedPermutation(/*allowZeroInResults=*/true))
    return false;
  for (auto [expr, run] : llvm::zip_equal(map.getResults(), layout)) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim) {
      if (!run.empty())
        return false;
      continue;
    }
    unsigned loop = dim.getPosition();
    if (isAligned.test(loop) && loops[loop] != run)
      return false;
    loops[loop] = run;
    isAligned.set(loop);
  }
  return true;
}

static bool overlaps(ArrayRef<FactorRun> loops, const FactorRun &run) {
  return llvm::any_of(loops, [&](const FactorRun &other) {
    return llvm::any_of(other, [&](unsigned factor) {
      return llvm::is_contained(run, factor);
    });
  });
}

/// If another member reads the same tensor, assigns that member's factors to
/// the loops over the tensor, so that both read it in the same loops.
void FusionDomain::alignWithReads(linalg::GenericOp op,
                                  SmallVectorImpl<FactorRun> &loops,
                                  BitVector &isAligned) {
  for (OpOperand *operand : op.getDpsInputOperands()) {
    auto layout = reads.find(operand->get());
    AffineMap map = op.getMatchingIndexingMap(operand);
    if (layout == reads.end() || !map.isProjectedPermutation(true))
      continue;
    for (auto [expr, run] : llvm::zip_equal(map.getResults(), layout->second)) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim || isAligned.test(dim.getPosition()) || overlaps(loops, run))
        continue;
      loops[dim.getPosition()] = run;
      isAligned.set(dim.getPosition());
    }
  }
}

/// Assigns unused factors of the same size, or new factors, to the remaining
/// loops.
void FusionDomain::alignBySize(linalg::GenericOp op,
                               SmallVectorImpl<FactorRun> &loops,
                               BitVector &isAligned) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  // Reduction loops of windows (as in pooling) always get new factors here.
  BitVector isWindow(loops.size());
  for (AffineMap map : op.getIndexingMapsArray())
    for (AffineExpr expr : map.getResults())
      if (!isa<AffineDimExpr>(expr))
        for (unsigned loop = 0; loop < loops.size(); ++loop)
          if (expr.isFunctionOfDim(loop))
            isWindow.set(loop);
  // Visit the innermost loop first, because the search for factors also starts
  // with the innermost: among equal sizes, each loop then gets the factor at
  // its own position.
  for (unsigned loop = loops.size(); loop-- > 0;) {
    bool isReduction =
        op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
    if (isAligned.test(loop) || ranges[loop] == 1 ||
        (isWindow.test(loop) && isReduction))
      continue;
    if (auto run = findUnusedRun(ranges[loop], loops)) {
      loops[loop] = *run;
      isAligned.set(loop);
    }
  }
  for (unsigned loop = 0; loop < loops.size(); ++loop)
    if (!isAligned.test(loop) && ranges[loop] != 1)
      loops[loop] = {addFactor(ranges[loop], ArrayRef(loops).take_front(loop))};
}

void FusionDomain::recordReads(linalg::GenericOp op,
                               ArrayRef<FactorRun> loops) {
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    if (layouts.contains(operand->get()) ||
        !isa<RankedTensorType>(operand->get().getType()) ||
        !map.isProjectedPermutation(true))
      continue;
    Layout layout;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      layout.push_back(dim ? loops[dim.getPosition()] : FactorRun());
    }
    reads.insert({operand->get(), layout});
  }
}

/// Inserts a new factor directly inside the innermost factor in `before`.
unsigned FusionDomain::addFactor(int64_t size, ArrayRef<FactorRun> before) {
  unsigned factor = sizes.size();
  sizes.push_back(size);
  size_t position = 0;
  for (const FactorRun &run : before)
    for (unsigned other : run)
      position = std::max<size_t>(position,
                                  llvm::find(order, other) - order.begin() + 1);
  order.insert(order.begin() + position, factor);
  return factor;
}

/// Finds consecutive factors that aren't in `used` and whose product is `size`,
/// as far inside as possible.
std::optional<FactorRun>
FusionDomain::findUnusedRun(int64_t size, ArrayRef<FactorRun> used) const {
  for (size_t end = order.size(); end > 0; --end) {
    FactorRun run;
    int64_t volume = 1;
    for (size_t i = end; i > 0 && volume < size; --i) {
      if (overlaps(used, {order[i - 1]}))
        break;
      run.insert(run.begin(), order[i - 1]);
      volume *= sizes[order[i - 1]];
      if (volume == size)
        return run;
    }
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

bool FusionDomain::addView(Operation *view) {
  auto source = layouts.find(getViewSource(view));
  if (source == layouts.end())
    return false;
  Layout layout = source->second, result;
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(view)) {
    for (const ReassociationIndices &group :
         collapse.getReassociationIndices()) {
      FactorRun run;
      for (int64_t dim : group)
        run.append(layout[dim].begin(), layout[dim].end());
      result.push_back(run);
    }
  } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(view)) {
    auto shape = expand.getResultType().getShape();
    auto groups = expand.getReassociationIndices();
    for (size_t dim = 0; dim < groups.size(); ++dim) {
      SmallVector<int64_t> parts;
      for (int64_t part : groups[dim])
        parts.push_back(shape[part]);
      // Splitting changes the layouts, so look this dimension's factors up
      // again.
      auto split = splitRun(layouts[getViewSource(view)][dim], parts);
      if (!split)
        return false;
      result.append(*split);
    }
    // No dimension has split a factor of an earlier one, because dimensions of
    // a layout never share factors. The reshape of a tensor of rank 0 has no
    // groups; its dimensions have size 1, and so no factors.
    result.resize(shape.size());
  } else {
    return false;
  }
  layouts[view->getResult(0)] = result;
  return true;
}

std::optional<FusionDomain::Layout>
FusionDomain::splitRun(FactorRun run, ArrayRef<int64_t> parts) {
  Layout result(parts.size());
  // Starting with the innermost part, take factors until the part is full, and
  // split the last factor if it is too large.
  for (size_t part = parts.size(); part-- > 0;) {
    int64_t open = parts[part];
    while (open > 1) {
      if (run.empty())
        return std::nullopt;
      unsigned factor = run.back();
      if (sizes[factor] > open) {
        if (sizes[factor] % open != 0)
          return std::nullopt;
        unsigned inner;
        splitFactor(factor, open, inner);
        result[part].insert(result[part].begin(), inner);
        open = 1;
      } else {
        if (open % sizes[factor] != 0)
          return std::nullopt;
        open /= sizes[factor];
        result[part].insert(result[part].begin(), factor);
        run.pop_back();
      }
    }
  }
  return run.empty() ? std::optional(result) : std::nullopt;
}

/// Splits a factor: `factor` becomes the outer part, `inner` the new inner
/// part. All runs that contain `factor` get both parts.
void FusionDomain::splitFactor(unsigned factor, int64_t innerSize,
                               unsigned &inner) {
  inner = sizes.size();
  sizes.push_back(innerSize);
  sizes[factor] /= innerSize;
  order.insert(llvm::find(order, factor) + 1, inner);
  auto replaceIn = [&](FactorRun &run) {
    if (auto *it = llvm::find(run, factor); it != run.end())
      run.insert(it + 1, inner);
  };
  for (DomainMember &member : members)
    llvm::for_each(member.loops, replaceIn);
  for (auto &[value, layout] : layouts)
    llvm::for_each(layout, replaceIn);
  for (auto &[value, layout] : reads)
    llvm::for_each(layout, replaceIn);
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

SmallVector<unsigned> FusionDomain::getSharedFactors() const {
  SmallVector<unsigned> shared;
  for (unsigned factor : order)
    if (llvm::all_of(members, [&](const DomainMember &member) {
          return member.has(factor) && !member.isReduced(factor);
        }))
      shared.push_back(factor);
  return shared;
}

int64_t FusionDomain::getVolume(ArrayRef<unsigned> factors) const {
  int64_t volume = 1;
  for (unsigned factor : factors)
    volume *= sizes[factor];
  return volume;
}

int64_t FusionDomain::getLargestVolume() const {
  int64_t largest = 0;
  for (const DomainMember &member : members) {
    linalg::GenericOp op = member.op;
    largest = std::max(largest, product(op.getStaticLoopRanges()));
  }
  return largest;
}

LinearForm FusionDomain::getLoopIndex(const DomainMember &member,
                                      unsigned loop) const {
  LinearForm form;
  form.strides.assign(sizes.size(), 0);
  int64_t stride = 1;
  for (unsigned factor : llvm::reverse(member.loops[loop])) {
    form.strides[factor] = stride;
    stride *= sizes[factor];
  }
  return form;
}

LinearForm FusionDomain::getAccess(const DomainMember &member, AffineMap map,
                                   ArrayRef<int64_t> shape) const {
  LinearForm form;
  form.strides.assign(sizes.size(), 0);
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    LinearExpr linear = *asLinear(map.getResult(dim), map.getNumDims());
    form.offset += linear.offset * stride;
    for (auto [loop, coefficient] : llvm::enumerate(linear.coefficients)) {
      if (coefficient == 0)
        continue;
      LinearForm index = getLoopIndex(member, loop);
      for (unsigned factor = 0; factor < sizes.size(); ++factor)
        form.strides[factor] += coefficient * stride * index.strides[factor];
    }
    stride *= shape[dim];
  }
  return form;
}
