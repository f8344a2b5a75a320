//===- ScheduleKernels.cpp - Selection of kernels' loops ------------------===//
//
// Schedules are chosen only here. The result is an attribute of the kernel,
// which the buffer plan, the lowering to loops and the executable read
// (KernelSchedule.h).
//
//===----------------------------------------------------------------------===//

#include "torch_ltc/Kernels/KernelSchedule.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"
#include "torch_ltc/Kernels/TargetCostModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <map>

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_SCHEDULEKERNELS
#include "torch_ltc/Kernels/Passes.h.inc"
} // namespace mlir::torch_ltc

using namespace mlir;
using namespace mlir::torch_ltc;

namespace {

class Scheduler : public KernelSchedule {
public:
  explicit Scheduler(func::FuncOp kernel) : KernelSchedule(kernel) {}

  /// Returns null if the kernel contains ops that can't be part of a domain.
  ltc::ScheduleAttr run();
  int64_t getWork() const;

private:
  ltc::ScheduleAttr toAttribute() const;
  void orderAxes();
  void mergeAxes();
  bool canMerge(const Axis &outer, const Axis &inner) const;
  void chooseIterations();
  unsigned getInnermostAxis() const;
  bool isWindow(unsigned axis) const;
  std::optional<unsigned> findTransposedAxis() const;
  void chooseStored();
  void buildNests();
  int64_t getGrain() const;
  SmallVector<int64_t> findChainCosts() const;
  bool isReduction(unsigned member) const;
  int64_t getInnerVolume(unsigned member) const;
  void findDemands(unsigned member, SmallVectorImpl<unsigned> &demands) const;
  void chooseUnrolled(Nest &nest) const;
  int64_t costOf(unsigned member) const {
    return getBodyCost(domain.getMembers()[member].op);
  }

  int64_t iterations = 1;
};

class ScheduleKernels
    : public torch_ltc::impl::ScheduleKernelsBase<ScheduleKernels> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<func::FuncOp>())
      if (kernel.isPrivate() && !kernel.isDeclaration())
        schedule(kernel);
  }

  void schedule(func::FuncOp kernel) {
    Scheduler scheduler(kernel);
    ltc::ScheduleAttr schedule = scheduler.run();
    if (!schedule)
      return;
    kernel->setAttr(kScheduleAttr, schedule);
    if (getOperation()->hasAttr(kGeneralAttr))
      kernel->setAttr(kWorkAttr,
                      Builder(kernel).getI64IntegerAttr(scheduler.getWork()));
  }
};

} // namespace

ltc::ScheduleAttr Scheduler::run() {
  if (!collectMembers() || !collectResults())
    return {};
  orderAxes();
  mergeAxes();
  chooseIterations();
  findInnerAxes();
  chooseStored();
  buildNests();
  return toAttribute();
}

ltc::ScheduleAttr Scheduler::toAttribute() const {
  MLIRContext *context = kernel->getContext();
  auto axisAttributes = llvm::map_to_vector(axes, [&](const Axis &axis) {
    return ltc::AxisAttr::get(context, axis.factors, axis.size);
  });
  auto nestAttributes = llvm::map_to_vector(nests, [&](const Nest &nest) {
    return ltc::NestAttr::get(context, nest.axes, nest.unrolled, nest.members);
  });
  SmallVector<unsigned> storedMembers;
  for (unsigned member = 0; member < stored.size(); ++member)
    if (stored[member])
      storedMembers.push_back(member);
  return ltc::ScheduleAttr::get(context, axisAttributes, outerAxes, splitAxis,
                                blockSize, tileAxis, storedMembers,
                                nestAttributes, iterations, getGrain());
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

/// Calls `callback` with every access of every member, as a linear form of the
/// factors.
static void
forEachAccess(const FusionDomain &domain,
              function_ref<void(const DomainMember &, OpOperand &, LinearForm)>
                  callback) {
  for (const DomainMember &member : domain.getMembers()) {
    linalg::GenericOp op = member.op;
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.get().getType());
      if (!type)
        continue;
      callback(member, operand,
               domain.getAccess(member, op.getMatchingIndexingMap(&operand),
                                type.getShape()));
    }
  }
}

/// Orders the loops by their strides in the largest access. The innermost
/// dimension of that access becomes the innermost loop.
void Scheduler::orderAxes() {
  struct Candidate {
    int64_t elements;
    bool isWrite; // strided writes cost more than strided reads
    LinearForm form;
  };
  SmallVector<Candidate> candidates;
  forEachAccess(domain, [&](const DomainMember &member, OpOperand &operand,
                            LinearForm form) {
    linalg::GenericOp op = member.op;
    bool isWrite = op.isDpsInit(&operand) &&
                   results.contains(op.getTiedOpResult(&operand));
    int64_t elements = 1;
    for (unsigned f = 0; f < domain.getNumFactors(); ++f)
      if (form.strides[f] != 0)
        elements *= domain.getSize(f);
    candidates.push_back({elements, isWrite, std::move(form)});
  });
  llvm::stable_sort(candidates, [](const Candidate &a, const Candidate &b) {
    return std::pair(a.elements, a.isWrite) > std::pair(b.elements, b.isWrite);
  });
  // A factor that the largest access lacks is ordered by the next largest
  // access that has it.
  SmallVector<int64_t> stride(domain.getNumFactors(), 0);
  for (const Candidate &candidate : candidates)
    for (unsigned f = 0; f < stride.size(); ++f)
      if (stride[f] == 0)
        stride[f] = std::abs(candidate.form.strides[f]);
  SmallVector<unsigned> order(domain.getOrder());
  llvm::stable_sort(
      order, [&](unsigned a, unsigned b) { return stride[a] > stride[b]; });
  for (unsigned factor : order)
    axes.push_back({{factor}, domain.getSize(factor)});
}

bool Scheduler::canMerge(const Axis &outer, const Axis &inner) const {
  unsigned f = outer.factors.back(), g = inner.factors.front();
  bool isFine = true;
  for (const DomainMember &member : domain.getMembers()) {
    isFine &= member.has(f) == member.has(g) &&
              member.isReduced(f) == member.isReduced(g);
    linalg::GenericOp op = member.op;
    if (auto stepped = op->getAttrOfType<DenseI64ArrayAttr>(kSteppedAttr))
      for (int64_t loop : stepped.asArrayRef())
        isFine &= domain.getLoopIndex(member, unsigned(loop)).strides[g] == 0;
    op.getBody()->walk([&](linalg::IndexOp index) {
      LinearForm form = domain.getLoopIndex(member, index.getDim());
      isFine &= form.strides[f] == form.strides[g] * domain.getSize(g);
    });
  }
  forEachAccess(
      domain, [&](const DomainMember &, OpOperand &, LinearForm form) {
        isFine &= form.strides[f] == form.strides[g] * domain.getSize(g);
      });
  return isFine;
}

void Scheduler::mergeAxes() {
  SmallVector<Axis> merged;
  for (Axis &axis : axes) {
    // Skip axes of size 1, which splitting can produce.
    if (axis.size == 1)
      continue;
    if (!merged.empty() && canMerge(merged.back(), axis)) {
      merged.back().factors.append(axis.factors);
      merged.back().size *= axis.size;
    } else {
      merged.push_back(axis);
    }
  }
  axes = std::move(merged);
}

//===----------------------------------------------------------------------===//
// Iterations
//===----------------------------------------------------------------------===//

/// Returns an axis along which a transposed operand (an operand whose stride
/// along the innermost axis is greater than 1) is contiguous. Returns nullopt
/// if there is none or if one of the two axes is too short.
std::optional<unsigned> Scheduler::findTransposedAxis() const {
  unsigned innermost = getInnermostAxis();
  std::optional<unsigned> found;
  forEachAccess(domain, [&](const DomainMember &member, OpOperand &operand,
                            LinearForm form) {
    linalg::GenericOp op = member.op;
    LinearForm access = overAxes(form);
    if (op.isDpsInit(&operand) || access.strides[innermost] <= 1 ||
        producers.contains(getRoot(operand.get())))
      return;
    for (unsigned axis = 0; axis < innermost; ++axis)
      if (access.strides[axis] == 1 &&
          axes[axis].size >= TargetCostModel::shortestTransposedAxis)
        found = axis;
  });
  return axes[innermost].size >= TargetCostModel::shortestTransposedAxis
             ? found
             : std::nullopt;
}

/// The axis of the vector loop: the innermost one that isn't a window.
unsigned Scheduler::getInnermostAxis() const {
  unsigned axis = axes.size() - 1;
  while (axis > 0 && isWindow(axis))
    --axis;
  return isWindow(axis) ? axes.size() - 1 : axis;
}

/// Whether the axis is small and reduced by every member that has it.
bool Scheduler::isWindow(unsigned axis) const {
  if (axes[axis].size > 16)
    return false;
  for (unsigned member = 0; member < domain.getMembers().size(); ++member)
    if (has(member, axis) && !isReduced(member, axis))
      return false;
  return true;
}

void Scheduler::chooseIterations() {
  if (axes.empty())
    return; // every op has one element
  SmallVector<unsigned> shared = domain.getSharedFactors();
  auto isShared = [&](unsigned axis) {
    return llvm::is_contained(shared, axes[axis].factors.front());
  };
  unsigned innermost = getInnermostAxis();
  int64_t outerVolume = 1;
  for (unsigned axis = 0; axis < axes.size(); ++axis) {
    if (!isShared(axis))
      continue;
    if (axis == innermost) {
      splitAxis = axis;
    } else {
      outerAxes.push_back(axis);
      outerVolume *= axes[axis].size;
    }
  }
  if (splitAxis) {
    // Blocks are long enough for vector loops, and multiples of cache lines.
    int64_t size = axes[innermost].size;
    bool isColumns = outerAxes.size() + 1 < axes.size();
    if (std::optional<unsigned> tiled = findTransposedAxis();
        tiled && !isColumns) {
      tileAxis = tiled;
      llvm::erase(outerAxes, *tiled);
      outerVolume /= axes[*tiled].size;
      outerVolume *= llvm::divideCeil(axes[*tiled].size, kTileSize);
      blockSize = kTileSize;
    } else if (outerAxes.empty()) {
      blockSize =
          isColumns ? TargetCostModel::shortBlock : TargetCostModel::longBlock;
    } else if (outerVolume >= TargetCostModel::blockIterations) {
      blockSize = size;
    } else {
      blockSize = TargetCostModel::longBlock;
    }
    // The size of an axis is divided by the block size, which therefore is at
    // least 1 even for an axis without elements.
    blockSize =
        tileAxis ? kTileSize : std::max<int64_t>(1, std::min(blockSize, size));
  }
  iterations = outerVolume * getNumBlocks();
}

/// The work of all iterations, in the unit of kWorkOfThread.
int64_t Scheduler::getWork() const {
  int64_t work = 0;
  for (unsigned member = 0; member < domain.getMembers().size(); ++member) {
    int64_t volume = 1;
    for (unsigned axis = 0; axis < axes.size(); ++axis)
      if (has(member, axis))
        volume *= axes[axis].size;
    work += volume * (TargetCostModel::moveCost + costOf(member));
  }
  return work;
}

int64_t Scheduler::getGrain() const {
  int64_t work = getWork();
  if (iterations < 2 || work < 2 * kWorkOfThread)
    return 0;
  return std::max<int64_t>(1, kWorkOfThread /
                                  std::max<int64_t>(1, work / iterations));
}

//===----------------------------------------------------------------------===//
// Nests
//===----------------------------------------------------------------------===//

int64_t mlir::torch_ltc::getBodyCost(linalg::GenericOp op) {
  int64_t cost = 1;
  op.getBody()->walk([&](Operation *inner) {
    bool isFunction =
        inner->getDialect() && inner->getDialect()->getNamespace() == "math" &&
        !isa<math::AbsFOp, math::FmaOp, math::SqrtOp, math::CopySignOp>(inner);
    if (isFunction)
      cost += 20;
    else if (isa<arith::DivFOp, arith::RemFOp, math::SqrtOp, tensor::ExtractOp>(
                 inner))
      cost += 4;
    else if (!inner->hasTrait<OpTrait::IsTerminator>())
      cost += 1;
  });
  return cost;
}

/// The cost of each member, including everything that it would compute on
/// demand.
SmallVector<int64_t> Scheduler::findChainCosts() const {
  constexpr int64_t most = 1 << 20;
  SmallVector<int64_t> costs;
  for (unsigned member = 0; member < domain.getMembers().size(); ++member) {
    int64_t cost = costOf(member);
    linalg::GenericOp op = domain.getMembers()[member].op;
    for (Value operand : op->getOperands()) {
      auto producer = getProducer(getRoot(operand));
      bool isOnDemand = producer && innerAxes[*producer] == innerAxes[member] &&
                        !isReduction(*producer);
      if (isOnDemand)
        cost += costs[*producer];
    }
    costs.push_back(std::min(cost, most));
  }
  return costs;
}

bool Scheduler::isReduction(unsigned member) const {
  return llvm::any_of(innerAxes[member],
                      [&](unsigned axis) { return isReduced(member, axis); });
}

/// The number of points of the member's inner axes: the size of a temporary for
/// its value if none of them is reduced.
int64_t Scheduler::getInnerVolume(unsigned member) const {
  int64_t volume = 1;
  for (unsigned axis : innerAxes[member])
    volume *= axes[axis].size;
  return volume;
}

/// Collects the stored members whose values `member` reads, directly or through
/// members that are computed on demand.
void Scheduler::findDemands(unsigned member,
                            SmallVectorImpl<unsigned> &demands) const {
  linalg::GenericOp op = domain.getMembers()[member].op;
  for (Value operand : op->getOperands()) {
    auto producer = getProducer(getRoot(operand));
    if (!producer)
      continue;
    if (stored[*producer])
      demands.push_back(*producer);
    else
      findDemands(*producer, demands);
  }
}

void Scheduler::chooseStored() {
  unsigned count = domain.getMembers().size();
  stored.assign(count, false);
  SmallVector<int64_t> chainCosts = findChainCosts();
  // Visit members in reverse order: all users of a value are visited before the
  // member that computes it.
  SmallVector<llvm::SmallDenseSet<unsigned, 4>> demandedBy(count);
  for (unsigned member = count; member-- > 0;) {
    linalg::GenericOp op = domain.getMembers()[member].op;
    bool isResult = llvm::any_of(op.getResults(), [&](Value result) {
      return results.contains(result);
    });
    // If it weren't stored, the value would be recomputed for each point of the
    // axes that only the consumer has.
    bool isBroadcast = llvm::any_of(demandedBy[member], [&](unsigned user) {
      return innerAxes[user] != innerAxes[member];
    });
    // A temporary that doesn't fit in the cache costs as much as many
    // operations.
    int64_t limit = getInnerVolume(member) <= TargetCostModel::cachedElements
                        ? TargetCostModel::cheapCost
                        : TargetCostModel::cheapCostBeyondCache;
    bool isWorthKeeping =
        demandedBy[member].size() > 1 && chainCosts[member] > limit;
    stored[member] = isReduction(member) || isResult ||
                     innerAxes[member].empty() || isBroadcast || isWorthKeeping;
    for (Value operand : op->getOperands()) {
      auto producer = getProducer(getRoot(operand));
      if (!producer)
        continue;
      if (stored[member])
        demandedBy[*producer].insert(member);
      else
        demandedBy[*producer].insert(demandedBy[member].begin(),
                                     demandedBy[member].end());
    }
  }
}

void Scheduler::buildNests() {
  SmallVector<unsigned> stageOf(domain.getMembers().size(), 0);
  // Nests are sorted by stage, then by number of axes: scalars come first.
  std::map<std::tuple<unsigned, size_t, std::vector<unsigned>>, Nest> byStage;
  for (unsigned member = 0; member < stageOf.size(); ++member) {
    if (!stored[member])
      continue;
    SmallVector<unsigned> demands;
    findDemands(member, demands);
    unsigned stage = 0;
    for (unsigned other : demands) {
      bool isPoint = innerAxes[other] == innerAxes[member] &&
                     llvm::none_of(innerAxes[other], [&](unsigned axis) {
                       return isReduced(other, axis);
                     });
      stage = std::max(stage, stageOf[other] + (isPoint ? 0 : 1));
    }
    stageOf[member] = stage;
    Nest &nest = byStage[{stage, innerAxes[member].size(),
                          std::vector<unsigned>(innerAxes[member].begin(),
                                                innerAxes[member].end())}];
    nest.axes = innerAxes[member];
    nest.members.push_back(member);
  }
  for (auto &[key, nest] : byStage) {
    chooseUnrolled(nest);
    nests.push_back(std::move(nest));
  }
}

/// Unrolls small reduced axes (windows) if other axes remain for the loops and
/// none of these is reduced.
void Scheduler::chooseUnrolled(Nest &nest) const {
  auto isReducedByAll = [&](unsigned axis) {
    return llvm::all_of(
        nest.members, [&](unsigned member) { return isReduced(member, axis); });
  };
  int64_t copies = 1;
  SmallVector<unsigned> small, rest;
  for (unsigned axis : nest.axes) {
    bool isSmall = isReducedByAll(axis) && axes[axis].size <= 16;
    (isSmall ? small : rest).push_back(axis);
    if (isSmall)
      copies *= axes[axis].size;
  }
  // If another reduced axis remained, the sums would have to be stored between
  // its points.
  bool isAnyReduced = llvm::any_of(rest, [&](unsigned axis) {
    return llvm::any_of(
        nest.members, [&](unsigned member) { return isReduced(member, axis); });
  });
  if (rest.empty() || isAnyReduced || copies > TargetCostModel::unrolledCopies)
    return;
  nest.unrolled = small;
  nest.axes = rest;
}
