//===- KernelSchedule.cpp - The loops of a kernel -------------------------===//

#include "torch_ltc/Kernels/KernelSchedule.h"

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Kernels/Program.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::torch_ltc;

bool torch_ltc::isScheduled(func::FuncOp kernel) {
  return kernel->hasAttr(kScheduleAttr);
}

FailureOr<KernelSchedule> KernelSchedule::read(func::FuncOp kernel) {
  auto attribute = kernel->getAttrOfType<ltc::ScheduleAttr>(kScheduleAttr);
  KernelSchedule schedule(kernel);
  if (!attribute || !schedule.collectMembers() || !schedule.collectResults() ||
      !schedule.adopt(attribute))
    return kernel.emitError("@")
           << kernel.getName() << " has a schedule that doesn't match its ops";
  return schedule;
}

bool KernelSchedule::adopt(ltc::ScheduleAttr attribute) {
  unsigned count = domain.getMembers().size();
  for (ltc::AxisAttr axis : attribute.getAxes()) {
    axes.push_back(
        {SmallVector<unsigned, 2>(axis.getFactors()), axis.getSize()});
    for (unsigned factor : axis.getFactors())
      if (factor >= domain.getNumFactors())
        return false;
    if (axis.getFactors().empty() ||
        domain.getVolume(axis.getFactors()) != axis.getSize())
      return false;
  }
  outerAxes.assign(attribute.getOuter().begin(), attribute.getOuter().end());
  splitAxis = attribute.getSplit();
  tileAxis = attribute.getTile();
  blockSize = attribute.getBlock();
  findInnerAxes();
  stored.assign(count, false);
  for (unsigned member : attribute.getStored()) {
    if (member >= count)
      return false;
    stored[member] = true;
  }
  for (ltc::NestAttr nest : attribute.getNests())
    nests.push_back({SmallVector<unsigned>(nest.getAxes()),
                     SmallVector<unsigned>(nest.getUnrolled()),
                     SmallVector<unsigned>(nest.getMembers())});
  return true;
}

int64_t KernelSchedule::getNumBlocks() const {
  if (!splitAxis)
    return 1;
  return std::max<int64_t>(1,
                           llvm::divideCeil(axes[*splitAxis].size, blockSize));
}

TripCount torch_ltc::getTripCount(func::FuncOp kernel) {
  auto schedule = kernel->getAttrOfType<ltc::ScheduleAttr>(kScheduleAttr);
  if (!schedule)
    return {};
  return {schedule.getIterations(), schedule.getGrain()};
}

//===----------------------------------------------------------------------===//
// Members and results
//===----------------------------------------------------------------------===//

Value KernelSchedule::getRoot(Value value) {
  while (isReshape(value.getDefiningOp()))
    value = getViewSource(value.getDefiningOp());
  return value;
}

/// Whether `op` is scalar code, which may read single elements of arguments.
static bool isScalarCode(Operation *op) {
  bool isScalar =
      llvm::none_of(op->getResultTypes(), llvm::IsaPred<TensorType>);
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return isa<BlockArgument>(KernelSchedule::getRoot(extract.getTensor()));
  return isScalar && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         llvm::none_of(op->getOperandTypes(), llvm::IsaPred<TensorType>);
}

bool KernelSchedule::collectMembers() {
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (!FusionDomain::isFusible(generic) || !domain.add(generic))
        return false;
      for (Value result : generic.getResults())
        producers[result] = domain.getMembers().size() - 1;
    } else if (isReshape(&op)) {
      if (domain.contains(getViewSource(&op)) && !domain.addView(&op))
        return false;
    } else if (!isa<tensor::EmptyOp>(op) && !isScalarCode(&op) &&
               !(op.getNumResults() == 1 && isUniform(op.getResult(0)))) {
      return false;
    }
  }
  return !domain.getMembers().empty();
}

bool KernelSchedule::collectResults() {
  Operation *terminator = kernel.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    Value root = getRoot(value);
    if (!producers.contains(root) || !results.try_emplace(root, index).second)
      return false;
  }
  return true;
}

std::optional<unsigned> KernelSchedule::getProducer(Value root) const {
  auto it = producers.find(root);
  return it == producers.end() ? std::nullopt : std::optional(it->second);
}

std::optional<unsigned> KernelSchedule::getResultIndex(Value root) const {
  auto it = results.find(root);
  return it == results.end() ? std::nullopt : std::optional(it->second);
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

bool KernelSchedule::has(unsigned member, unsigned axis) const {
  return domain.getMembers()[member].has(axes[axis].factors.front());
}

bool KernelSchedule::isReduced(unsigned member, unsigned axis) const {
  return domain.getMembers()[member].isReduced(axes[axis].factors.front());
}

LinearForm KernelSchedule::overAxes(const LinearForm &form) const {
  LinearForm result{form.offset, {}};
  for (const Axis &axis : axes)
    result.strides.push_back(form.strides[axis.factors.back()]);
  return result;
}

LinearForm KernelSchedule::getAccess(unsigned member,
                                     OpOperand &operand) const {
  const DomainMember &m = domain.getMembers()[member];
  linalg::GenericOp op = m.op;
  auto type = dyn_cast<RankedTensorType>(operand.get().getType());
  return overAxes(
      domain.getAccess(m, op.getMatchingIndexingMap(&operand),
                       type ? type.getShape() : ArrayRef<int64_t>()));
}

bool KernelSchedule::isTransposed(const LinearForm &access) const {
  return tileAxis && access.strides[*tileAxis] == 1 &&
         access.strides[*splitAxis] > 1;
}

//===----------------------------------------------------------------------===//
// Nests
//===----------------------------------------------------------------------===//

void KernelSchedule::findInnerAxes() {
  for (unsigned member = 0; member < domain.getMembers().size(); ++member) {
    innerAxes.emplace_back();
    for (unsigned axis = 0; axis < axes.size(); ++axis)
      if (has(member, axis) && !llvm::is_contained(outerAxes, axis) &&
          axis != splitAxis)
        innerAxes.back().push_back(axis);
    if (splitAxis && has(member, *splitAxis))
      innerAxes.back().push_back(*splitAxis);
  }
}

void KernelSchedule::forEachRead(
    const Nest &nest,
    function_ref<void(unsigned member, OpOperand &)> callback) const {
  SmallVector<unsigned> open(nest.members);
  llvm::SmallDenseSet<unsigned> seen(open.begin(), open.end());
  while (!open.empty()) {
    unsigned member = open.pop_back_val();
    linalg::GenericOp op = domain.getMembers()[member].op;
    for (OpOperand &operand : op->getOpOperands()) {
      callback(member, operand);
      auto producer = getProducer(getRoot(operand.get()));
      if (producer && !stored[*producer] && seen.insert(*producer).second)
        open.push_back(*producer);
    }
  }
}
