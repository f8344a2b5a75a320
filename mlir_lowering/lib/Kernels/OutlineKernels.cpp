//===- OutlineKernels.cpp - Groups of ops become kernel functions ---------===//

#include "UnitScheduler.h"

#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "torch_ltc/Kernels/Passes.h.inc"

namespace {

/// Builds the function of one kernel and replaces its members by a call.
class KernelOutliner {
public:
  KernelOutliner(ArrayRef<Operation *> members, StringRef name)
      : members(members.begin(), members.end()), name(name) {}

  void outline() {
    for (Operation *member : members)
      for (Value value : valuesRead(member))
        addInput(value);
    for (Operation *member : members)
      for (Value result : member->getResults())
        if (llvm::any_of(result.getUsers(),
                         [&](Operation *user) { return !isMember(user); }))
          outputs.push_back(result);
    buildFunction();
    replaceByCall();
  }

private:
  bool isMember(Operation *op) {
    for (; op; op = op->getParentOp())
      if (members.contains(op))
        return true;
    return false;
  }

  /// Makes `value` an argument of the kernel unless a member computes it. If an
  /// op that is cloned into the kernel computes it, adds the op's operands
  /// instead.
  void addInput(Value value) {
    Operation *def = value.getDefiningOp();
    if (def && members.contains(def))
      return;
    if (!def || getRole(def) != OpRole::Clone) {
      inputs.insert(value);
      return;
    }
    if (!visited.insert(def).second)
      return;
    for (Value operand : valuesRead(def))
      addInput(operand);
    clones.push_back(def);
  }

  void buildFunction() {
    auto parent = members.front()->getParentOfType<func::FuncOp>();
    OpBuilder builder(parent->getContext());
    builder.setInsertionPoint(parent->getBlock(), parent->getBlock()->end());
    SmallVector<Location> locations;
    for (Operation *member : members)
      locations.push_back(member->getLoc());
    location = FusedLoc::get(builder.getContext(), locations);
    auto inputTypes =
        llvm::to_vector(TypeRange(ValueRange(inputs.getArrayRef())));
    auto outputTypes = llvm::to_vector(TypeRange(ValueRange(outputs)));
    kernel =
        func::FuncOp::create(builder, location, name,
                             builder.getFunctionType(inputTypes, outputTypes));
    kernel.setPrivate();
    Block *entry = kernel.addEntryBlock();
    builder.setInsertionPointToEnd(entry);
    IRMapping mapping;
    mapping.map(inputs.getArrayRef(), entry->getArguments());
    cloneOps(builder, mapping);
    SmallVector<Value> results;
    for (Value output : outputs)
      results.push_back(mapping.lookup(output));
    func::ReturnOp::create(builder, location, results);
  }

  /// Clones the ops of role `Clone` in the order in which members use them,
  /// which doesn't depend on the rest of the program, and then the members in
  /// the program's order.
  void cloneOps(OpBuilder &builder, IRMapping &mapping) {
    for (Operation *op : clones)
      builder.clone(*op, mapping);
    for (Operation *member : members) {
      Operation *clone = builder.clone(*member, mapping);
      clone->removeAttr(kGroupAttr);
      clone->removeAttr(kGroupOrderAttr);
    }
  }

  void replaceByCall() {
    OpBuilder builder(members.back());
    builder.setInsertionPointAfter(members.back());
    auto call = ltc::KernelCallOp::create(
        builder, location, ValueRange(outputs).getTypes(), kernel.getSymName(),
        inputs.getArrayRef());
    for (auto [output, result] : llvm::zip_equal(outputs, call.getResults()))
      output.replaceUsesWithIf(
          result, [&](OpOperand &use) { return !isMember(use.getOwner()); });
    for (Operation *member : llvm::reverse(members))
      member->erase();
  }

  SetVector<Operation *> members;
  StringRef name;
  SetVector<Value> inputs;
  DenseSet<Operation *> visited;
  SmallVector<Operation *> clones; ///< operands before users
  SmallVector<Value> outputs;
  LocationAttr location;
  func::FuncOp kernel;
};

bool isUsedByProgramItself(Operation *op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) {
    if (user->hasTrait<OpTrait::IsTerminator>())
      return true;
    OpRole role = getRole(user);
    return role == OpRole::Call || role == OpRole::View;
  });
}

/// Returns the value of all elements of a splat constant, zero for an undefined
/// tensor, and null for other ops.
TypedAttr getSplatValue(Operation *op) {
  if (auto empty = dyn_cast<tensor::EmptyOp>(op))
    return Builder(op->getContext())
        .getZeroAttr(empty.getType().getElementType());
  DenseElementsAttr elements;
  if (!matchPattern(op, m_Constant(&elements)) || !elements.isSplat())
    return {};
  return cast<TypedAttr>(elements.getSplatValue<Attribute>());
}

class OutlineKernels : public impl::OutlineKernelsBase<OutlineKernels> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> program = findProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    Block &block = program->getBody().front();
    materializeSplats(block);
    separateFills(block);
    groupInsertions(block);
    if (failed(UnitScheduler(*program).schedule()))
      return signalPassFailure();
    outlineUnits(block);
  }

  /// Replaces splats and undefined tensors by fills if the program returns or
  /// views them or passes them to an op of the ltc dialect (a library call,
  /// for example): such tensors need memory, and a constant would occupy their
  /// whole size in the executable.
  void materializeSplats(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      TypedAttr value = getSplatValue(&op);
      if (!value || !isUsedByProgramItself(&op))
        continue;
      OpBuilder builder(&op);
      auto type = cast<RankedTensorType>(op.getResult(0).getType());
      Value scalar = arith::ConstantOp::create(builder, op.getLoc(), value);
      Value empty = tensor::EmptyOp::create(
          builder, op.getLoc(), type.getShape(), type.getElementType());
      Value filled = linalg::FillOp::create(builder, op.getLoc(), scalar, empty)
                         .getResult(0);
      op.getResult(0).replaceAllUsesWith(filled);
      op.erase();
    }
  }

  /// Gives kernels a copy of each fill that needs memory, so that they clone
  /// the copy instead of reading the memory.
  void separateFills(Block &block) {
    for (auto fill :
         llvm::make_early_inc_range(block.getOps<linalg::FillOp>())) {
      if (!isUsedByProgramItself(fill))
        continue;
      OpBuilder builder(fill);
      Operation *copy = builder.clone(*fill);
      fill.getResult(0).replaceUsesWithIf(
          copy->getResult(0), [](OpOperand &use) {
            return !use.getOwner()->hasTrait<OpTrait::IsTerminator>() &&
                   getRole(use.getOwner()) == OpRole::Compute;
          });
    }
  }

  /// Makes each chain of insertions (for example, a concatenation) a group:
  /// single insertions would each copy the whole tensor. The size of groups is
  /// limited, because LLVM's compile time grows superlinearly with the number
  /// of insertions.
  void groupInsertions(Block &block) {
    constexpr unsigned kMaxInsertions = 16;
    DenseMap<Attribute, unsigned> sizes;
    int64_t next = 0;
    for (Operation &op : block)
      if (auto group = op.getAttrOfType<IntegerAttr>(kGroupAttr))
        next = std::max(next, group.getInt() + 1);
    Builder builder(block.getParentOp());
    for (auto insert : block.getOps<tensor::InsertSliceOp>()) {
      if (insert->hasAttr(kGroupAttr))
        continue;
      IntegerAttr group;
      auto previous = insert.getDest().getDefiningOp<tensor::InsertSliceOp>();
      if (previous && previous->hasOneUse())
        group = previous->getAttrOfType<IntegerAttr>(kGroupAttr);
      if (!group || sizes.lookup(group) >= kMaxInsertions)
        group = builder.getI64IntegerAttr(next++);
      ++sizes[group];
      insert->setAttr(kGroupAttr, group);
    }
  }

  void outlineUnits(Block &block) {
    SmallVector<SmallVector<Operation *, 4>> units;
    Attribute openGroup;
    for (Operation &op : block.without_terminator()) {
      Attribute group = op.getAttr(kGroupAttr);
      bool isFillWithMemory =
          isa<linalg::FillOp>(op) && isUsedByProgramItself(&op);
      if (group && group == openGroup)
        units.back().push_back(&op);
      else if (group || getRole(&op) == OpRole::Compute || isFillWithMemory)
        units.push_back({&op});
      openGroup = group;
    }
    for (auto [index, unit] : llvm::enumerate(units))
      KernelOutliner(unit, "kernel_" + std::to_string(index)).outline();
    eraseDeadOps(block);
  }

  void eraseDeadOps(Block &block) {
    SmallVector<Operation *> ops;
    for (Operation &op : block.without_terminator())
      ops.push_back(&op);
    for (Operation *op : llvm::reverse(ops))
      if (isOpTriviallyDead(op))
        op->erase();
  }
};

} // namespace
} // namespace mlir::torch_ltc
