//===- WriteOver.cpp - In-place updates of a kernel's arguments -----------===//

#include "WriteOver.h"
#include "torch_ltc/Kernels/Program.h"

using namespace mlir;
using namespace mlir::torch_ltc;

static bool equal(const LinearForm &a, const LinearForm &b) {
  return a.offset == b.offset && a.strides == b.strides;
}

/// Whether a tensor.extract reads the argument, at indices that aren't known
/// before the run.
static bool isReadAnywhere(func::FuncOp kernel, Value argument) {
  bool found = false;
  kernel.walk([&](tensor::ExtractOp extract) {
    found |= KernelSchedule::getRoot(extract.getTensor()) == argument;
  });
  return found;
}

const KernelSchedule *WriteOverAnalysis::getSchedule(func::FuncOp kernel) {
  auto [entry, isNew] = schedules.try_emplace(kernel);
  if (isNew && isScheduled(kernel))
    if (FailureOr<KernelSchedule> schedule = KernelSchedule::read(kernel);
        succeeded(schedule))
      entry->second = std::make_unique<KernelSchedule>(std::move(*schedule));
  return entry->second.get();
}

bool WriteOverAnalysis::canWriteOver(func::FuncOp kernel, unsigned argument,
                                     unsigned result) {
  Value written = KernelSchedule::getRoot(
      kernel.getBody().front().getTerminator()->getOperand(result));
  Value read = kernel.getArgument(argument);
  auto readType = dyn_cast<RankedTensorType>(read.getType());
  auto writtenType = cast<RankedTensorType>(written.getType());
  if (!readType || readType.getElementType() != writtenType.getElementType() ||
      readType.getNumElements() != writtenType.getNumElements() ||
      isReadAnywhere(kernel, read))
    return false;
  const KernelSchedule *schedule = getSchedule(kernel);
  if (!schedule)
    return false;
  unsigned writer = *schedule->getProducer(written);
  for (unsigned axis = 0; axis < schedule->getAxes().size(); ++axis)
    if (schedule->isReduced(writer, axis))
      return false;
  linalg::GenericOp op = schedule->getDomain().getMembers()[writer].op;
  LinearForm write = schedule->getAccess(
      writer, *op.getDpsInitOperand(cast<OpResult>(written).getResultNumber()));
  // Up to and in the writer's nest, each point may only read the element that
  // it will write; later nests must not read the argument. In the body of a
  // nest, loads precede stores.
  bool isWritten = false, isFine = true;
  for (const Nest &nest : schedule->getNests()) {
    schedule->forEachRead(nest, [&](unsigned member, OpOperand &operand) {
      if (KernelSchedule::getRoot(operand.get()) != read)
        return;
      isFine &=
          !isWritten && equal(schedule->getAccess(member, operand), write);
    });
    isWritten |= llvm::is_contained(nest.members, writer);
  }
  return isFine;
}
