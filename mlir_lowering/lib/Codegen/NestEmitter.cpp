//===- NestEmitter.cpp - Loops and accumulators of one nest ---------------===//

#include "LoopEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

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
    result.push_back({member, level, isReducedOutside, {}});
  }
  return result;
}

void LoopEmitter::emitNest(const Nest &nest) {
  vectorAxis =
      nest.axes.empty() ? std::nullopt : std::optional(nest.axes.back());
  SmallVector<Accumulation> accumulations = findAccumulations(nest);
  for (const Accumulation &accumulation : accumulations)
    if (accumulation.startsInMemory)
      emitInitialValues(nest, accumulation);
  emitLevel(nest, 0, accumulations);
}

/// Fills the memory of sums that other loops interrupt.
void LoopEmitter::emitInitialValues(const Nest &nest,
                                    const Accumulation &accumulation) {
  OpBuilder::InsertionGuard guard(builder);
  for (unsigned axis : nest.axes) {
    if (schedule.isReduced(accumulation.member, axis))
      continue;
    auto [low, high] = boundsOf(axis);
    auto loop = scf::ForOp::create(builder, loc, low, high, constantIndex(1));
    builder.setInsertionPointToStart(loop.getBody());
    index[axis] = loop.getInductionVar();
  }
  pointValues.clear();
  loads.clear();
  unsigned member = accumulation.member;
  for (unsigned r = 0; r < opOf(member)->getNumResults(); ++r)
    storeResult(member, r, initialValue(member, r));
}

/// How many points of the loop around the vector loop one body takes: sums
/// over that loop then visit memory once instead of at each point.
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
  constexpr int64_t mostOps = 160, mostCopies = 8;
  int64_t copies = std::clamp<int64_t>(mostOps / std::max<int64_t>(bodySize, 1),
                                       1, mostCopies);
  return std::min(copies, schedule.getAxes()[nest.axes[level]].size);
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
      OpOperand *init =
          opOf(member).getDpsInitOperand(result.getResultNumber());
      accumulation.values.push_back(loadStored(member, *init, result));
    }
  }
  if (level == nest.axes.size()) {
    emitPoint(nest, accumulations);
  } else {
    auto [low, high] = boundsOf(nest.axes[level]);
    int64_t step = chooseJam(nest, level, accumulations);
    if (step == 1) {
      emitLoop(nest, level, low, high, 1, accumulations);
    } else {
      int64_t size = schedule.getAxes()[nest.axes[level]].size;
      Value middle = constantIndex(size - size % step);
      emitLoop(nest, level, low, middle, step, accumulations);
      if (size % step != 0)
        emitLoop(nest, level, middle, high, 1, accumulations);
    }
  }
  for (Accumulation &accumulation : accumulations)
    if (accumulation.level == level)
      finishAccumulation(accumulation);
}

void LoopEmitter::emitLoop(const Nest &nest, unsigned level, Value low,
                           Value high, int64_t step,
                           SmallVectorImpl<Accumulation> &accumulations) {
  SmallVector<Value> carried;
  for (Accumulation &accumulation : accumulations)
    if (accumulation.level <= level)
      carried.append(accumulation.values);
  auto loop =
      scf::ForOp::create(builder, loc, low, high, constantIndex(step), carried);
  unsigned axis = nest.axes[level];
  auto take = [&](ValueRange values) {
    for (Accumulation &accumulation : accumulations) {
      if (accumulation.level > level)
        continue;
      for (Value &value : accumulation.values) {
        value = values.front();
        values = values.drop_front();
      }
    }
  };
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    index[axis] = loop.getInductionVar();
    take(loop.getRegionIterArgs());
    int64_t outerJam = jam;
    if (step > 1) {
      jam = step;
      jamAxis = axis;
    }
    emitLevel(nest, level + 1, accumulations);
    jam = outerJam;
    SmallVector<Value> results;
    for (Accumulation &accumulation : accumulations)
      if (accumulation.level <= level)
        results.append(accumulation.values);
    // Without carried values the builder has made the terminator.
    if (!results.empty())
      scf::YieldOp::create(builder, loc, results);
  }
  take(loop.getResults());
}

/// One body for all points of the unrolled axes and of the jammed loop.
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
  // After all loads: a result may be written over an operand.
  for (auto [result, value] : finished)
    storeResult(*schedule.getProducer(result), result.getResultNumber(), value);
}

void LoopEmitter::finishAccumulation(const Accumulation &accumulation) {
  pointValues.clear();
  loads.clear();
  for (auto [r, value] : llvm::enumerate(accumulation.values))
    storeResult(accumulation.member, r, value);
}
