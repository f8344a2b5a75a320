//===- UnitScheduler.cpp - Order of a program's kernels -------------------===//

#include "UnitScheduler.h"

#include "torch_ltc/Dialect/Ltc/Collectives.h"
#include "torch_ltc/Kernels/Program.h"

using namespace mlir;
using namespace mlir::torch_ltc;

UnitScheduler::UnitScheduler(func::FuncOp program)
    : program(program), block(program.getBody().front()) {
  DenseMap<int64_t, unsigned> unitOfGroup;
  for (Operation &op : block.without_terminator()) {
    auto group = op.getAttrOfType<IntegerAttr>(kGroupAttr);
    unsigned unit = units.size();
    if (group)
      unit = unitOfGroup.try_emplace(group.getInt(), unit).first->second;
    if (unit == units.size())
      units.emplace_back();
    units[unit].push_back(&op);
    unitOf[&op] = unit;
  }
  auto placeOf = [](Operation *op) {
    auto place = op->getAttrOfType<IntegerAttr>(kGroupOrderAttr);
    return place ? place.getInt() : 0;
  };
  for (auto &members : units)
    llvm::stable_sort(members, [&](Operation *a, Operation *b) {
      return placeOf(a) < placeOf(b);
    });
}

/// Returns the position of `op` among the units that need equally many results
/// of other processes: lower values come first.
static int getRank(Operation *op) {
  if (asHostCall(op, collective::kBegin) || asHostCall(op, collective::kStart))
    return 0;
  return asHostCall(op, collective::kBlocking) ? 2 : 1;
}

LogicalResult UnitScheduler::schedule() {
  findProducers();
  putUpdatesLast();
  putInOrder();
  state.assign(units.size(), State::New);
  for (unsigned unit = 0; unit < units.size(); ++unit)
    if (isa<ltc::CheckBoundsOp>(units[unit].front()) && failed(visit(unit)))
      return failure();
  SmallVector<unsigned> waits = countWaits();
  auto priorityOf = [&](unsigned unit) {
    return std::pair(waits[unit], getRank(units[unit].front()));
  };
  auto order = llvm::to_vector(llvm::seq<unsigned>(0, units.size()));
  llvm::stable_sort(order, [&](unsigned a, unsigned b) {
    return priorityOf(a) < priorityOf(b);
  });
  for (unsigned unit : order)
    if (failed(visit(unit)))
      return failure();
  return success();
}

SmallVector<unsigned> UnitScheduler::countWaits() const {
  SmallVector<unsigned> count(units.size());
  SmallVector<SmallVector<unsigned, 4>> consumers(units.size());
  for (unsigned unit = 0; unit < units.size(); ++unit)
    for (unsigned producer : producers[unit])
      consumers[producer].push_back(unit);
  unsigned number = 0;
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    Operation *op = units[unit].front();
    if (!asHostCall(op, collective::kWait) &&
        !asHostCall(op, collective::kFinish))
      continue;
    SmallVector<unsigned> open{unit};
    ++number;
    while (!open.empty()) {
      unsigned next = open.pop_back_val();
      if (std::exchange(count[next], number) == number)
        continue;
      open.append(consumers[next]);
    }
  }
  return count;
}

void UnitScheduler::findProducers() {
  producers.resize(units.size());
  for (auto [unit, members] : llvm::enumerate(units))
    for (Operation *member : members)
      for (Value value : valuesRead(member))
        if (Operation *def = value.getDefiningOp())
          if (unsigned producer = unitOf.lookup(def); producer != unit)
            producers[unit].insert(producer);
}

void UnitScheduler::putUpdatesLast() {
  Operation *terminator = block.getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    auto updated =
        program.getResultAttrOfType<IntegerAttr>(index, kUpdatesAttr);
    Operation *writer = value.getDefiningOp();
    while (writer && getRole(writer) == OpRole::View)
      writer = getViewSource(writer).getDefiningOp();
    if (!updated || !writer)
      continue;
    unsigned writerUnit = unitOf.lookup(writer);
    for (unsigned reader : readersOf(program.getArgument(updated.getInt())))
      if (reader != writerUnit && !needs(reader, writerUnit))
        producers[writerUnit].insert(reader);
  }
}

void UnitScheduler::putInOrder() {
  DenseMap<std::pair<Attribute, Attribute>, unsigned> lastEnd;
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    auto begin = asHostCall(units[unit].front(), collective::kBegin);
    if (!begin || !begin->hasAttr(collective::kSynchronous))
      continue;
    Operation *end = *begin.getOutputs()[1].user_begin();
    std::pair kindAndGroup(begin.getArguments()[2], begin.getArguments()[3]);
    auto [last, isFirst] =
        lastEnd.try_emplace(kindAndGroup, unitOf.lookup(end));
    if (isFirst)
      continue;
    if (!needs(last->second, unit))
      producers[unit].insert(last->second);
    last->second = unitOf.lookup(end);
  }
}

llvm::SmallSetVector<unsigned, 4>
UnitScheduler::readersOf(BlockArgument argument) {
  llvm::SmallSetVector<unsigned, 4> readers;
  SmallVector<Value> values{argument};
  while (!values.empty())
    for (Operation *user : values.pop_back_val().getUsers()) {
      Operation *op = block.findAncestorOpInBlock(*user);
      if (op == block.getTerminator())
        continue;
      readers.insert(unitOf.lookup(op));
      if (getRole(op) == OpRole::View)
        values.push_back(op->getResult(0));
    }
  return readers;
}

bool UnitScheduler::needs(unsigned unit, unsigned other) const {
  SmallVector<unsigned> open{unit};
  llvm::BitVector seen(units.size());
  while (!open.empty()) {
    unsigned next = open.pop_back_val();
    if (next == other)
      return true;
    for (unsigned producer : producers[next])
      if (!seen.test(producer)) {
        seen.set(producer);
        open.push_back(producer);
      }
  }
  return false;
}

LogicalResult UnitScheduler::visit(unsigned root) {
  SmallVector<unsigned> stack{root};
  while (!stack.empty()) {
    unsigned unit = stack.back();
    if (state[unit] == State::Done) {
      stack.pop_back();
      continue;
    }
    SmallVector<unsigned> open;
    for (unsigned producer : producers[unit])
      if (state[producer] != State::Done)
        open.push_back(producer);
    if (open.empty()) {
      for (Operation *member : units[unit])
        member->moveBefore(block.getTerminator());
      state[unit] = State::Done;
      stack.pop_back();
      continue;
    }
    if (state[unit] == State::Open)
      return units[unit].front()->emitError(
          "group of ops depends on itself through another group");
    state[unit] = State::Open;
    stack.append(open.rbegin(), open.rend());
  }
  return success();
}
