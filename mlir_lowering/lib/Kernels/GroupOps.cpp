//===- GroupOps.cpp - Grouping of ops with a common iteration space -------===//
//
// Groups are formed in one pass over the program. Every unit (a group, or an
// ungrouped op) has a number. The program can run units in the order of their
// numbers, because an op joins a group only if everything that the op reads
// comes from units with at most the group's number. Joining therefore never
// creates a cycle, and needs no search.
//
//===----------------------------------------------------------------------===//

#include "torch_ltc/Kernels/FusionDomain.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"
#include "torch_ltc/Kernels/TargetCostModel.h"

#include "mlir/Transforms/RegionUtils.h"

#include <map>
#include <set>

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_GROUPOPS
#include "torch_ltc/Kernels/Passes.h.inc"

namespace {

struct Group {
  FusionDomain domain;
  SmallVector<Operation *> ops; ///< members and views
  SetVector<Value> inputs;      ///< tensors from outside
  size_t bodySize = 0;
};

class Grouper {
public:
  explicit Grouper(Block &block) : block(block) {}

  void run() {
    SmallVector<Operation *> ops;
    for (Operation &op : block.without_terminator())
      ops.push_back(&op);
    for (Operation *op : ops)
      place(op);
    Builder builder(block.getParentOp()->getContext());
    for (auto &[number, group] : groups)
      for (auto [place, op] : llvm::enumerate(group->ops)) {
        op->setAttr(kGroupAttr, builder.getI64IntegerAttr(number));
        op->setAttr(kGroupOrderAttr, builder.getI64IntegerAttr(place));
      }
  }

private:
  // Limits a kernel's size: LLVM's compile time grows superlinearly with it.
  static constexpr size_t kMaxOps = 64, kMaxBodyOps = 400, kMaxInputs = 32;

  void place(Operation *op) {
    OpRole role = getRole(op);
    if (role == OpRole::Clone || role == OpRole::Constant) {
      // Scalar code that reads an element of a computed tensor is cloned into
      // its users' kernels, which must therefore follow the tensor's whole
      // unit.
      int64_t latest = latestUnit(op);
      unitOf[op] = latest < 0 ? -1 : nextUnit++;
      recordReader(op);
      return;
    }
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (generic && FusionDomain::isFusible(generic)) {
      if (!joinAny(generic))
        startGroup(generic);
      return;
    }
    // A view belongs to the unit of its source; the group of an op that reads
    // the view gets a copy (addViews).
    unitOf[op] = role == OpRole::View ? latestUnit(op) : nextUnit++;
    if (role != OpRole::View)
      recordReader(op);
  }

  /// Records that the op's unit reads values of other units.
  void recordReader(Operation *op) {
    int64_t number = unitOf.lookup(op);
    for (Value value : valuesRead(op)) {
      int64_t unit = unitOfValue(value);
      if (unit >= 0 && unit != number)
        unitReaders[unit].insert(number);
    }
  }

  int64_t unitOfValue(Value value) {
    Operation *def = value.getDefiningOp();
    int64_t unit = def ? unitOf.lookup(def) : -1;
    for (auto it = mergedInto.find(unit); it != mergedInto.end();
         it = mergedInto.find(unit))
      unit = it->second;
    return unit;
  }

  int64_t latestUnit(Operation *op) {
    int64_t latest = -1;
    for (Value value : valuesRead(op))
      latest = std::max(latest, unitOfValue(value));
    return latest;
  }

  //===--------------------------------------------------------------------===//
  // Joining
  //===--------------------------------------------------------------------===//

  static std::optional<int64_t> recomputedFor(Operation *op) {
    auto number = op->getAttrOfType<IntegerAttr>(kRecomputedAttr);
    return number ? std::optional(number.getInt()) : std::nullopt;
  }

  /// Lets a recomputed op (a copy) join only the other copies for the same
  /// group, because another unit could contain its original. The copy's user
  /// joins later.
  bool joinCopies(linalg::GenericOp op, int64_t latest) {
    auto it = groupOfCopies.find(*recomputedFor(op));
    if (it == groupOfCopies.end())
      return false;
    int64_t number = it->second;
    for (auto merged = mergedInto.find(number); merged != mergedInto.end();
         merged = mergedInto.find(number))
      number = merged->second;
    return number >= latest && tryJoin(op, number);
  }

  bool joinAny(linalg::GenericOp op) {
    int64_t latest = latestUnit(op);
    if (recomputedFor(op))
      return joinCopies(op, latest);
    if (latest >= 0 && tryJoin(op, latest)) {
      mergeOperandGroups(op, latest);
      return true;
    }
    // Try groups that also read the op's largest operand, the latest first.
    constexpr unsigned kMaxTries = 4;
    SmallVector<int64_t> siblings;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto readers = readersOf.find(operand->get());
      if (readers == readersOf.end() || !isLargestInput(op, operand->get()))
        continue;
      siblings.append(readers->second.end() -
                          std::min<size_t>(readers->second.size(), kMaxTries),
                      readers->second.end());
    }
    llvm::sort(siblings, std::greater<>());
    siblings.erase(llvm::unique(siblings), siblings.end());
    for (int64_t number : ArrayRef(siblings).take_front(kMaxTries))
      if (number > latest && tryJoin(op, number))
        return true;
    return false;
  }

  static bool isLargestInput(linalg::GenericOp op, Value value) {
    int64_t bytes = getTensorBytes(value.getType());
    return isa<RankedTensorType>(value.getType()) &&
           llvm::all_of(op.getDpsInputs(), [&](Value other) {
             return getTensorBytes(other.getType()) <= bytes;
           });
  }

  bool tryJoin(linalg::GenericOp op, int64_t number) {
    auto it = groups.find(number);
    if (it == groups.end())
      return false;
    Group &group = *it->second;
    size_t bodySize = op.getBody()->getOperations().size();
    if (readsWhole(op, number, group.domain))
      return false;
    if (group.ops.size() >= kMaxOps ||
        group.bodySize + bodySize > kMaxBodyOps ||
        group.inputs.size() + op.getNumDpsInputs() > kMaxInputs)
      return false;
    FusionDomain domain = group.domain;
    SmallVector<SmallVector<Operation *>> views;
    if (!addViews(op, number, domain, views))
      return false;
    SmallVector<Value> originals = takeViews(op, views);
    if (!domain.add(op) || !isWorthwhile(domain)) {
      restoreViews(op, views, originals);
      return false;
    }
    group.domain = std::move(domain);
    for (ArrayRef<Operation *> chain : views)
      group.ops.append(chain.begin(), chain.end());
    addMember(op, number, group);
    return true;
  }

  /// Whether the op reads a value of unit `number` other than point by point or
  /// through reshapes: for example, at computed positions or in a slice.
  bool readsWhole(linalg::GenericOp op, int64_t number,
                  const FusionDomain &domain) {
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    for (Value value : captured)
      if (unitOfValue(value) == number)
        return true;
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return unitOfValue(operand) == number &&
             !domain.contains(throughReshapes(operand, domain));
    });
  }

  static Value throughReshapes(Value value, const FusionDomain &domain) {
    while (!domain.contains(value)) {
      Operation *def = value.getDefiningOp();
      if (!isReshape(def))
        break;
      value = getViewSource(def);
    }
    return value;
  }

  /// Copies the reshapes for each operand that is a reshape of a member's
  /// value, and adds the copies to `domain`. Returns false if they don't fit.
  bool addViews(linalg::GenericOp op, int64_t number, FusionDomain &domain,
                SmallVectorImpl<SmallVector<Operation *>> &views) {
    for (Value operand : op->getOperands()) {
      SmallVector<Operation *> chain;
      Value source = throughReshapes(operand, domain);
      for (Value value = operand; value != source;
           value = getViewSource(chain.back()))
        chain.push_back(value.getDefiningOp());
      views.emplace_back();
      if (!domain.contains(source) || chain.empty())
        continue;
      OpBuilder builder(op);
      Value viewed = source;
      for (Operation *view : llvm::reverse(chain)) {
        Operation *copy = builder.clone(*view);
        copy->setOperand(0, viewed);
        viewed = copy->getResult(0);
        views.back().push_back(copy);
        unitOf[copy] = number;
        if (!domain.addView(copy)) {
          eraseViews(views);
          return false;
        }
      }
    }
    return true;
  }

  static SmallVector<Value>
  takeViews(linalg::GenericOp op, ArrayRef<SmallVector<Operation *>> views) {
    SmallVector<Value> originals(op->getOperands());
    for (auto [index, chain] : llvm::enumerate(views))
      if (!chain.empty())
        op->setOperand(index, chain.back()->getResult(0));
    return originals;
  }

  void restoreViews(linalg::GenericOp op,
                    ArrayRef<SmallVector<Operation *>> views,
                    ArrayRef<Value> originals) {
    op->setOperands(originals);
    eraseViews(views);
  }

  void eraseViews(ArrayRef<SmallVector<Operation *>> views) {
    for (ArrayRef<Operation *> chain : views)
      for (Operation *view : llvm::reverse(chain)) {
        unitOf.erase(view);
        view->erase();
      }
  }

  /// Merges the other groups that `op` reads into its group, if no other op
  /// needs their values earlier. For example, `a * x + b * y` starts as two
  /// groups.
  void mergeOperandGroups(linalg::GenericOp op, int64_t number) {
    SmallVector<int64_t> others;
    for (Value operand : op->getOperands())
      if (int64_t unit = unitOfValue(operand);
          unit != number && groups.count(unit))
        others.push_back(unit);
    for (int64_t other : others)
      if (groups.count(other) && *unitReaders[other].begin() == number)
        tryMerge(other, number);
  }

  void tryMerge(int64_t from, int64_t to) {
    Group &source = *groups[from], &target = *groups[to];
    if (source.ops.size() + target.ops.size() > kMaxOps ||
        source.bodySize + target.bodySize > kMaxBodyOps ||
        source.inputs.size() + target.inputs.size() > kMaxInputs)
      return;
    FusionDomain domain;
    for (Operation *op : llvm::concat<Operation *>(source.ops, target.ops)) {
      auto generic = dyn_cast<linalg::GenericOp>(op);
      if (!(generic ? domain.add(generic) : domain.addView(op)))
        return;
      if (generic && readsSource(generic, from, domain))
        return;
    }
    if (!isWorthwhile(domain))
      return;
    target.domain = std::move(domain);
    for (Operation *op : source.ops)
      unitOf[op] = to;
    target.ops.insert(target.ops.begin(), source.ops.begin(), source.ops.end());
    target.bodySize += source.bodySize;
    target.inputs.insert(source.inputs.begin(), source.inputs.end());
    target.inputs.remove_if(
        [&](Value value) { return target.domain.contains(value); });
    groups.erase(from);
    std::set<int64_t> readers = std::move(unitReaders[from]);
    readers.erase(to);
    unitReaders[to].merge(readers);
    mergedInto[from] = to; // the program's views are still of unit `from`
  }

  /// Whether `op`, a member of the target group, reads values of group `from`
  /// in other ways than element by element: for example, through a reshape that
  /// belongs to no group.
  bool readsSource(linalg::GenericOp op, int64_t from,
                   const FusionDomain &domain) {
    return llvm::any_of(valuesRead(op), [&](Value value) {
      return unitOfValue(value) == from && !domain.contains(value);
    });
  }

  /// Whether the domain is small or has iterations that threads can share.
  /// Reductions over different dimensions have no common iterations, and are
  /// faster one after the other.
  static bool isWorthwhile(const FusionDomain &domain) {
    return domain.getLargestVolume() <= TargetCostModel::smallKernel ||
           domain.getVolume(domain.getSharedFactors()) >=
               TargetCostModel::kernelIterations;
  }

  void startGroup(linalg::GenericOp op) {
    int64_t number = nextUnit++;
    auto group = std::make_unique<Group>();
    bool isAdded = group->domain.add(op);
    if (!isAdded) {
      unitOf[op] = number; // alone: bufferization lowers it
      recordReader(op);
      return;
    }
    addMember(op, number, *group);
    groups[number] = std::move(group);
    if (auto copies = recomputedFor(op))
      groupOfCopies[*copies] = number;
  }

  void addMember(linalg::GenericOp op, int64_t number, Group &group) {
    group.ops.push_back(op);
    group.bodySize += op.getBody()->getOperations().size();
    unitOf[op] = number;
    recordReader(op);
    for (Value input : op.getDpsInputs()) {
      if (group.domain.contains(input) || isUniform(input))
        continue;
      group.inputs.insert(input);
      SmallVector<int64_t, 4> &readers = readersOf[input];
      if (readers.empty() || readers.back() != number)
        readers.push_back(number);
    }
  }

  Block &block;
  int64_t nextUnit = 0;
  DenseMap<Operation *, int64_t> unitOf;
  std::map<int64_t, std::unique_ptr<Group>> groups;
  /// The units that read a unit's values. A unit that has been merged into a
  /// later one is still listed under its old, smaller number.
  std::map<int64_t, std::set<int64_t>> unitReaders;
  DenseMap<int64_t, int64_t> mergedInto;
  DenseMap<int64_t, int64_t> groupOfCopies; ///< by kRecomputedAttr
  DenseMap<Value, SmallVector<int64_t, 4>> readersOf;
};

class GroupOps : public impl::GroupOpsBase<GroupOps> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> program = findProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    Block &block = program->getBody().front();
    // The pass runs twice. Its second run has nothing to do unless
    // RecomputeValues has dissolved the groups.
    if (llvm::any_of(block,
                     [](Operation &op) { return op.hasAttr(kGroupAttr); }))
      return;
    Grouper(block).run();
    // Erase views that groups have copied: they would keep their sources in
    // memory.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
      op.removeAttr(kRecomputedAttr);
      if (isOpTriviallyDead(&op))
        op.erase();
    }
  }
};

} // namespace
} // namespace mlir::torch_ltc
