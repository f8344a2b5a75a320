//===- RecomputeValues.cpp - Recomputation of values ----------------------===//
//
// A value that the forward part computes and the backward part needs is written
// to memory by one kernel and read by another. If elementwise ops compute such
// a value from tensors that the second kernel reads anyway, or from fewer bytes
// than the value has, the second kernel recomputes the value: this saves
// memory, and usually also time.
//
//===----------------------------------------------------------------------===//

#include "torch_ltc/Kernels/FusionDomain.h"
#include "torch_ltc/Kernels/KernelSchedule.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"
#include "torch_ltc/Kernels/TargetCostModel.h"

#include <map>

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_RECOMPUTEVALUES
#include "torch_ltc/Kernels/Passes.h.inc"

namespace {

/// Minimum size in bytes of a large value in a program for all sizes. Values
/// whose sizes vary exceed it at the large stand-ins, whatever their sizes in a
/// run.
constexpr int64_t smallBytesOfGeneral = 4096;
/// Limits the size of kernels, as in GroupOps.
constexpr size_t kMaxRecomputedOps = 24;

/// Whether the op is elementwise, reads each element once (apart from
/// broadcasts) and reads nothing at computed positions.
bool isRecomputable(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || generic.getNumDpsInits() != 1 ||
      generic.getNumParallelLoops() != generic.getNumLoops() ||
      !FusionDomain::isFusible(generic))
    return false;
  for (AffineMap map : generic.getIndexingMapsArray()) {
    if (!map.isProjectedPermutation(/*allowZeroInResults=*/true))
      return false;
    // Reads must be in the order of the loops: a transposed read is cheaper if
    // it is done only once.
    int last = -1;
    for (AffineExpr result : map.getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(result)) {
        if (int(dim.getPosition()) < last)
          return false;
        last = dim.getPosition();
      }
  }
  return llvm::all_of(
      generic.getBody()->without_terminator(), [](Operation &inner) {
        return inner.getNumRegions() == 0 && !isa<tensor::ExtractOp>(inner);
      });
}

double costOf(linalg::GenericOp op) {
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  return double(getBodyCost(op)) * double(type.getNumElements());
}

/// How to recompute a set of values, and the cost.
struct Recipe {
  SetVector<Operation *> ops; ///< with the views between them
  SetVector<Value> sources;   ///< large tensors to read besides the inputs
  double cost = 0;
  bool isPossible = true;
};

class Recomputer {
public:
  explicit Recomputer(func::FuncOp program)
      : program(program), block(program.getBody().front()),
        leastBytes(program->getParentOp()->hasAttr(kGeneralAttr)
                       ? smallBytesOfGeneral
                       : TargetCostModel::storedBytes) {
    for (Operation &op : block)
      if (auto group = op.getAttrOfType<IntegerAttr>(kGroupAttr))
        groups[group.getInt()].push_back(&op);
  }

  bool run() {
    bool isChanged = false;
    for (auto &[number, members] : groups)
      isChanged |= improve(number, members);
    return isChanged;
  }

private:
  static std::optional<int64_t> groupOf(Operation *op) {
    auto group = op ? op->getAttrOfType<IntegerAttr>(kGroupAttr) : nullptr;
    return group ? std::optional(group.getInt()) : std::nullopt;
  }

  /// Whether `value` is a donatable parameter. Its memory is donated at its
  /// last reader, so a later reader would need a copy.
  bool isDonated(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument &&
           program.getArgAttr(argument.getArgNumber(), kDonatableAttr);
  }

  bool improve(int64_t number, ArrayRef<Operation *> members) {
    SetVector<Value> inputs;
    for (Operation *member : members)
      for (Value operand : member->getOperands()) {
        Value root = KernelSchedule::getRoot(operand);
        if (groupOf(root.getDefiningOp()) != number &&
            isa<RankedTensorType>(root.getType()) && !isUniform(root))
          inputs.insert(root);
      }
    SetVector<Value> candidates;
    for (Value input : inputs)
      if (getTensorBytes(input.getType()) >= leastBytes &&
          groupOf(input.getDefiningOp()) &&
          isRecomputable(input.getDefiningOp()))
        candidates.insert(input);
    // Choose all candidates if that pays off, otherwise each candidate that
    // pays off together with those chosen before it.
    SetVector<Value> chosen;
    if (pays(number, candidates, inputs))
      chosen = candidates;
    else
      for (Value candidate : candidates) {
        SetVector<Value> more = chosen;
        more.insert(candidate);
        if (pays(number, more, inputs))
          chosen = more;
      }
    if (chosen.empty())
      return false;
    Recipe recipe;
    for (Value value : chosen)
      collect(value, chosen, inputs, recipe);
    apply(number, members, chosen, recipe);
    return true;
  }

  /// Adds the ops that compute `value` to the recipe. The group reads `inputs`
  /// anyway, except those in `chosen`.
  void collect(Value value, const SetVector<Value> &chosen,
               const SetVector<Value> &inputs, Recipe &recipe) {
    SmallVector<Value> open{value};
    while (!open.empty() && recipe.isPossible) {
      Value next = open.pop_back_val();
      Operation *def = next.getDefiningOp();
      bool isLarge = isa<RankedTensorType>(next.getType()) &&
                     getTensorBytes(next.getType()) >= leastBytes;
      bool isView =
          isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(def);
      bool isInput = inputs.contains(next) && !chosen.contains(next);
      bool isStart = next == value;
      if (isView || (isLarge && !isInput && isRecomputable(def))) {
        if (!recipe.ops.insert(def))
          continue;
        if (auto generic = dyn_cast<linalg::GenericOp>(def)) {
          recipe.cost += costOf(generic);
          llvm::append_range(open, generic.getDpsInputs());
        } else {
          open.push_back(getViewSource(def));
        }
        continue;
      }
      recipe.isPossible &= !isStart && recipe.ops.size() <= kMaxRecomputedOps;
      if (!isLarge || isUniform(next) || isInput)
        continue;
      recipe.isPossible &= !isDonated(next);
      recipe.sources.insert(next);
    }
  }

  bool pays(int64_t number, const SetVector<Value> &chosen,
            const SetVector<Value> &inputs) {
    if (chosen.empty())
      return false;
    Recipe recipe;
    double saved = 0;
    for (Value value : chosen) {
      collect(value, chosen, inputs, recipe);
      saved += TargetCostModel::byteCost *
               double(getTensorBytes(value.getType())) *
               (isOnlyKeptFor(number, value) ? 2 : 1);
    }
    if (!recipe.isPossible || recipe.ops.size() > kMaxRecomputedOps)
      return false;
    double spent = recipe.cost;
    for (Value source : recipe.sources)
      spent +=
          TargetCostModel::byteCost * double(getTensorBytes(source.getType()));
    // Uncertain gains don't justify larger kernels.
    return spent < 0.8 * saved;
  }

  /// Whether only the group that computes the value and group `number` use it.
  static bool isOnlyKeptFor(int64_t number, Value value) {
    auto own = groupOf(value.getDefiningOp());
    SmallVector<Value> open{value};
    while (!open.empty()) {
      for (Operation *user : open.pop_back_val().getUsers()) {
        auto group = groupOf(user);
        if (group && (group == own || group == number))
          continue;
        if (group || !isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user))
          return false;
        open.push_back(user->getResult(0));
      }
    }
    return true;
  }

  void apply(int64_t number, ArrayRef<Operation *> members,
             const SetVector<Value> &chosen, const Recipe &recipe) {
    SmallVector<Operation *> ordered(members);
    llvm::sort(ordered, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    IRMapping copies;
    for (Operation *member : ordered)
      for (OpOperand &operand : member->getOpOperands()) {
        if (!chosen.contains(KernelSchedule::getRoot(operand.get())))
          continue;
        OpBuilder builder(member);
        operand.set(copy(builder, operand.get(), number, recipe, copies));
      }
  }

  /// Copies the ops that compute `value` to the builder's insertion point.
  /// Returns the copy's result, or `value` if it isn't recomputed.
  Value copy(OpBuilder &builder, Value value, int64_t number,
             const Recipe &recipe, IRMapping &copies) {
    if (Value known = copies.lookupOrNull(value))
      return known;
    Operation *def = value.getDefiningOp();
    bool isGeneric = isa_and_present<linalg::GenericOp>(def);
    bool isView =
        isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(def);
    if (!isView && !(isGeneric && recipe.ops.contains(def)))
      return value;
    SmallVector<Value> operands;
    for (Value operand : def->getOperands())
      operands.push_back(copy(builder, operand, number, recipe, copies));
    if (isView && operands.front() == getViewSource(def))
      return value;
    Operation *clone = builder.clone(*def);
    clone->setOperands(operands);
    if (isGeneric)
      clone->setAttr(kRecomputedAttr, builder.getI64IntegerAttr(number));
    copies.map(value, clone->getResult(0));
    return clone->getResult(0);
  }

  func::FuncOp program;
  Block &block;
  int64_t leastBytes; ///< minimum size of a large value
  std::map<int64_t, SmallVector<Operation *>> groups;
};

class RecomputeValues : public impl::RecomputeValuesBase<RecomputeValues> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> program = findProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    if (!Recomputer(*program).run())
      return;
    // Erase unused ops and dissolve the groups, which GroupOps forms again.
    for (Operation &op : llvm::make_early_inc_range(
             llvm::reverse(program->getBody().front()))) {
      op.removeAttr(kGroupAttr);
      op.removeAttr(kGroupOrderAttr);
      if (isOpTriviallyDead(&op))
        op.erase();
    }
  }
};

} // namespace
} // namespace mlir::torch_ltc
