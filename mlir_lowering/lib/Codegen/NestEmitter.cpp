//===- NestEmitter.cpp - Loops and accumulators of one nest ---------------===//

#include "LoopEmitter.h"

#include "torch_ltc/Kernels/TargetCostModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::torch_ltc;

std::pair<Value, Value> LoopEmitter::boundsOf(unsigned axis) {
  if (schedule.getSplitAxis() == axis)
    return {blockLow, blockHigh};
  if (schedule.getTileAxis() == axis)
    return {tileLow, tileHigh};
  return {constantIndex(0), constantIndex(schedule.getAxes()[axis].size)};
}

SmallVector<LoopEmitter::Accumulation>
LoopEmitter::findAccumulations(const Nest &nest) {
  SmallVector<Accumulation> result;
  for (unsigned member : nest.members) {
    if (opOf(member).getNumReductionLoops() == 0)
      continue;
    unsigned level = nest.axes.size();
    while (level > 0 && schedule.isReduced(member, nest.axes[level - 1]))
      --level;
    bool isReducedOutside =
        llvm::any_of(ArrayRef(nest.axes).take_front(level), [&](unsigned axis) {
          return schedule.isReduced(member, axis);
        });
    result.push_back({member, level, isReducedOutside, isSum(member), {}});
  }
  return result;
}

/// Whether the member adds each element to one floating-point accumulator.
bool LoopEmitter::isSum(unsigned member) {
  linalg::GenericOp op = opOf(member);
  if (op->getNumResults() != 1)
    return false;
  BlockArgument accumulator = op.getRegionOutputArgs()[0];
  auto add = op.getBody()
                 ->getTerminator()
                 ->getOperand(0)
                 .getDefiningOp<arith::AddFOp>();
  return add && accumulator.hasOneUse() &&
         llvm::is_contained(add->getOperands(), accumulator);
}

Value LoopEmitter::zeroOf(Type type) {
  return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
}

void LoopEmitter::emitNest(const Nest &nest) {
  vectorAxis =
      nest.axes.empty() ? std::nullopt : std::optional(nest.axes.back());
  SmallVector<Accumulation> accumulations = findAccumulations(nest);
  for (const Accumulation &accumulation : accumulations)
    if (accumulation.startsInMemory)
      emitInitialValues(nest, accumulation);
  emitLevel(nest, 0, accumulations);
  for (const Accumulation &accumulation : accumulations)
    if (wideSums.contains(accumulation.member))
      emitWideResults(nest, accumulation);
}

/// Emits loops over the axes over which the member isn't reduced, and enters
/// them.
void LoopEmitter::enterKeptLoops(const Nest &nest, unsigned member) {
  for (unsigned axis : nest.axes) {
    if (schedule.isReduced(member, axis))
      continue;
    auto [low, high] = boundsOf(axis);
    auto loop = scf::ForOp::create(builder, loc, low, high, constantIndex(1));
    builder.setInsertionPointToStart(loop.getBody());
    index[axis] = loop.getInductionVar();
  }
  pointValues.clear();
  loads.clear();
}

/// Initializes the memory of a reduction that has a parallel loop inside a
/// reduced loop.
void LoopEmitter::emitInitialValues(const Nest &nest,
                                    const Accumulation &accumulation) {
  OpBuilder::InsertionGuard guard(builder);
  unsigned member = accumulation.member;
  enterKeptLoops(nest, member);
  if (wideSums.contains(member))
    return storeWide(member, initialValue(member, 0));
  for (unsigned r = 0; r < opOf(member)->getNumResults(); ++r)
    storeResult(member, r, initialValue(member, r));
}

void LoopEmitter::emitWideResults(const Nest &nest,
                                  const Accumulation &accumulation) {
  OpBuilder::InsertionGuard guard(builder);
  unsigned member = accumulation.member;
  enterKeptLoops(nest, member);
  Type type = getElementTypeOrSelf(opOf(member)->getResult(0).getType());
  storeResult(member, 0, narrow(loadWide(member), type));
}

Value LoopEmitter::loadWide(unsigned member) {
  const Temporary &wide = wideSums.at(member);
  return loadElement(wide.memory, linearIndex(temporaryForm(wide)),
                     builder.getF64Type());
}

void LoopEmitter::storeWide(unsigned member, Value value) {
  const Temporary &wide = wideSums.at(member);
  store(widen(value), wide.memory, temporaryForm(wide));
}

/// Returns how many points of the loop around the vector loop are handled by
/// one body. Sums over that loop then access memory once in each body instead
/// of at each point.
int64_t LoopEmitter::chooseJam(const Nest &nest, unsigned level,
                               ArrayRef<Accumulation> accumulations) {
  if (level + 2 != nest.axes.size() || accumulations.empty())
    return 1;
  for (const Accumulation &accumulation : accumulations)
    if (accumulation.level != nest.axes.size() ||
        !schedule.isReduced(accumulation.member, nest.axes[level]))
      return 1;
  int64_t bodySize = 0;
  schedule.forEachRead(nest, [&](unsigned member, OpOperand &) {
    bodySize += opOf(member).getBody()->getOperations().size();
  });
  int64_t copies = std::clamp<int64_t>(TargetCostModel::jammedOps /
                                           std::max<int64_t>(bodySize, 1),
                                       1, TargetCostModel::jammedCopies);
  return std::min(copies, schedule.getAxes()[nest.axes[level]].size);
}

/// Rounds `size` down to a multiple of `step`. A kernel for all sizes does this
/// at run time, because rounded stand-ins don't show how other sizes are
/// rounded.
Value LoopEmitter::roundDown(unsigned axis, int64_t step) {
  int64_t size = schedule.getAxes()[axis].size;
  if (!isVarying(axis))
    return constantIndex(size / step * step);
  // `zero` is 0, because iterations aren't negative, but no pass can fold it.
  Value zero = arith::MinSIOp::create(builder, loc, begin, constantIndex(0));
  Value value = arith::AddIOp::create(builder, loc, constantIndex(size), zero);
  Value rest = arith::RemUIOp::create(builder, loc, value, constantIndex(step));
  return arith::SubIOp::create(builder, loc, value, rest);
}

void LoopEmitter::emitLevel(const Nest &nest, unsigned level,
                            SmallVectorImpl<Accumulation> &accumulations) {
  for (Accumulation &accumulation : accumulations) {
    if (accumulation.level != level)
      continue;
    unsigned member = accumulation.member;
    pointValues.clear();
    loads.clear();
    accumulation.values.clear();
    for (OpResult result : opOf(member)->getResults()) {
      if (!accumulation.startsInMemory) {
        accumulation.values.push_back(
            initialValue(member, result.getResultNumber()));
        continue;
      }
      if (wideSums.contains(member)) {
        accumulation.values.push_back(
            zeroOf(getElementTypeOrSelf(result.getType())));
        continue;
      }
      OpOperand *init =
          opOf(member).getDpsInitOperand(result.getResultNumber());
      accumulation.values.push_back(loadStored(member, *init, result));
    }
  }
  if (level == nest.axes.size()) {
    emitPoint(nest, accumulations);
  } else {
    unsigned axis = nest.axes[level];
    auto [low, high] = boundsOf(axis);
    int64_t step = chooseJam(nest, level, accumulations);
    auto body = [&] { emitLevel(nest, level + 1, accumulations); };
    if (step == 1) {
      emitBlocks(nest, level, low, high, accumulations, body);
    } else {
      Value middle = roundDown(axis, step);
      emitLoop(nest, level, low, middle, step, /*isWide=*/false, accumulations,
               [&] {
                 llvm::SaveAndRestore<int64_t> outerJam(jam, step);
                 jamAxis = axis;
                 body();
               });
      if (!isWhole(axis, step))
        emitLoop(nest, level, middle, high, 1, /*isWide=*/false, accumulations,
                 body);
    }
  }
  for (Accumulation &accumulation : accumulations)
    if (accumulation.level == level)
      finishAccumulation(accumulation);
}

/// Whether LLVM is likely to use vectors in the nest's innermost loop: it
/// doesn't for most loops that read elements at computed positions.
bool LoopEmitter::canBeVectorized(const Nest &nest) {
  bool hasGather = false;
  schedule.forEachRead(nest, [&](unsigned member, OpOperand &) {
    hasGather |= !opOf(member).getBody()->getOps<tensor::ExtractOp>().empty();
  });
  return !hasGather;
}

/// Emits the loop of a level. A loop that sums many terms becomes a loop over
/// blocks of terms.
void LoopEmitter::emitBlocks(const Nest &nest, unsigned level, Value low,
                             Value high,
                             SmallVectorImpl<Accumulation> &accumulations,
                             function_ref<void()> body) {
  unsigned axis = nest.axes[level];
  bool isVectorLoop = level + 1 == nest.axes.size() && canBeVectorized(nest);
  int64_t block = isVectorLoop ? kVectorSumBlock : kSumBlock;
  bool isLongSum = (isVarying(axis) || schedule.getAxes()[axis].size > block) &&
                   llvm::any_of(accumulations, [&](auto &accumulation) {
                     return accumulation.isSum && accumulation.level <= level;
                   });
  if (!isLongSum)
    return emitLoop(nest, level, low, high, 1, /*isWide=*/false, accumulations,
                    body);
  emitLoop(nest, level, low, high, block, /*isWide=*/true, accumulations, [&] {
    Value first = index[axis];
    Value last =
        arith::AddIOp::create(builder, loc, first, constantIndex(block));
    if (!isWhole(axis, block))
      last = arith::MinSIOp::create(builder, loc, last, high);
    emitLoop(nest, level, first, last, 1, /*isWide=*/false, accumulations,
             body);
  });
}

Value LoopEmitter::widen(Value value) {
  Type wide = builder.getF64Type();
  if (value.getType() == wide)
    return value;
  return arith::ExtFOp::create(builder, loc, wide, value);
}

Value LoopEmitter::narrow(Value value, Type type) {
  if (value.getType() == type)
    return value;
  return arith::TruncFOp::create(builder, loc, type, value);
}

/// Emits one loop, which carries the accumulators of the levels up to this one.
/// `isWide`: the loop adds partial sums in f64; each iteration computes one of
/// them, starting with 0. In other loops, sums of outer levels start with 0,
/// and are added to the outer level's accumulator afterwards.
void LoopEmitter::emitLoop(const Nest &nest, unsigned level, Value low,
                           Value high, int64_t step, bool isWide,
                           SmallVectorImpl<Accumulation> &accumulations,
                           function_ref<void()> body) {
  SmallVector<Accumulation *> open;
  for (Accumulation &accumulation : accumulations)
    if (accumulation.level <= level)
      open.push_back(&accumulation);
  SmallVector<Value> carried, before;
  for (Accumulation *accumulation : open) {
    bool isPartial =
        !isWide && accumulation->isSum && accumulation->level < level;
    before.push_back(accumulation->values[0]);
    if (isPartial)
      carried.push_back(zeroOf(before.back().getType()));
    else if (isWide && accumulation->isSum)
      carried.push_back(widen(before.back()));
    else
      carried.append(accumulation->values);
  }
  auto loop =
      scf::ForOp::create(builder, loc, low, high, constantIndex(step), carried);
  auto take = [&](ValueRange values) {
    for (Accumulation *accumulation : open)
      for (Value &value : accumulation->values) {
        value = values.front();
        values = values.drop_front();
      }
  };
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    index[nest.axes[level]] = loop.getInductionVar();
    take(loop.getRegionIterArgs());
    SmallVector<Value> totals;
    for (auto [accumulation, start] : llvm::zip_equal(open, before)) {
      totals.push_back(accumulation->values[0]);
      if (isWide && accumulation->isSum)
        accumulation->values[0] = zeroOf(start.getType());
    }
    body();
    SmallVector<Value> results;
    for (auto [accumulation, total] : llvm::zip_equal(open, totals)) {
      if (isWide && accumulation->isSum)
        accumulation->values[0] = arith::AddFOp::create(
            builder, loc, total, widen(accumulation->values[0]));
      results.append(accumulation->values);
    }
    // Without carried values the builder has created the terminator.
    if (!results.empty())
      scf::YieldOp::create(builder, loc, results);
  }
  take(loop.getResults());
  for (auto [accumulation, start] : llvm::zip_equal(open, before)) {
    if (!accumulation->isSum)
      continue;
    Value &sum = accumulation->values[0];
    if (isWide)
      sum = narrow(sum, start.getType());
    else if (accumulation->level < level)
      sum = arith::AddFOp::create(builder, loc, start, sum);
  }
}

/// Emits the body for each point of the unrolled axes and of the jammed loop.
void LoopEmitter::emitPoint(const Nest &nest,
                            SmallVectorImpl<Accumulation> &accumulations) {
  SmallVector<int64_t> sizes{jam};
  for (unsigned axis : nest.unrolled)
    sizes.push_back(schedule.getAxes()[axis].size);
  int64_t copies = 1;
  for (int64_t size : sizes)
    copies *= size;
  Value jamBase = jam > 1 ? index[jamAxis] : Value();
  for (int64_t copy = 0; copy < copies; ++copy) {
    int64_t rest = copy;
    for (size_t i = sizes.size(); i-- > 1;) {
      index[nest.unrolled[i - 1]] = constantIndex(rest % sizes[i]);
      rest /= sizes[i];
    }
    if (jam > 1)
      index[jamAxis] =
          arith::AddIOp::create(builder, loc, jamBase, constantIndex(rest));
    emitInstance(nest, accumulations);
  }
  if (jam > 1)
    index[jamAxis] = jamBase;
}

void LoopEmitter::emitInstance(const Nest &nest,
                               SmallVectorImpl<Accumulation> &accumulations) {
  pointValues.clear();
  loads.clear();
  SmallVector<std::pair<OpResult, Value>> finished;
  for (unsigned member : nest.members) {
    auto *accumulation = llvm::find_if(
        accumulations, [&](auto &other) { return other.member == member; });
    if (accumulation != accumulations.end()) {
      accumulation->values = evaluate(member, accumulation->values);
      continue;
    }
    SmallVector<Value> values = evaluate(member, {});
    for (auto [result, value] :
         llvm::zip_equal(opOf(member)->getResults(), values)) {
      pointValues[result] = value;
      finished.push_back({result, value});
    }
  }
  // Store after all loads, because a result may overwrite an operand.
  for (auto [result, value] : finished)
    storeResult(*schedule.getProducer(result), result.getResultNumber(), value);
}

void LoopEmitter::finishAccumulation(const Accumulation &accumulation) {
  pointValues.clear();
  loads.clear();
  unsigned member = accumulation.member;
  if (wideSums.contains(member)) {
    Value sum = arith::AddFOp::create(builder, loc, loadWide(member),
                                      widen(accumulation.values[0]));
    return storeWide(member, sum);
  }
  for (auto [r, value] : llvm::enumerate(accumulation.values))
    storeResult(accumulation.member, r, value);
}
