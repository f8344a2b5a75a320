//===- WriteOver.cpp - When a kernel may update an argument in place ------===//

#include "torch_ltc/Kernels/BufferPlan.h"
#include "torch_ltc/Kernels/KernelSchedule.h"
#include "torch_ltc/Kernels/Program.h"

using namespace mlir;
using namespace mlir::torch_ltc;

static bool equal(const LinearForm &a, const LinearForm &b) {
  return a.offset == b.offset && a.strides == b.strides;
}

/// Whether code outside the ops' operand lists reads the argument, at elements
/// that nobody knows before the run.
static bool isReadAnywhere(func::FuncOp kernel, Value argument) {
  bool found = false;
  kernel.walk([&](tensor::ExtractOp extract) {
    found |= KernelSchedule::getRoot(extract.getTensor()) == argument;
  });
  return found;
}

const std::optional<KernelSchedule> &
WriteOverAnalysis::getSchedule(func::FuncOp kernel) {
  auto &schedule = schedules[kernel];
  if (!schedule)
    schedule = std::make_unique<std::optional<KernelSchedule>>(
        KernelSchedule::compute(kernel));
  return *schedule;
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
  const std::optional<KernelSchedule> &schedule = getSchedule(kernel);
  if (!schedule)
    return false;
  unsigned writer = *schedule->getProducer(written);
  for (unsigned axis = 0; axis < schedule->getAxes().size(); ++axis)
    if (schedule->isReduced(writer, axis))
      return false;
  linalg::GenericOp op = schedule->getDomain().getMembers()[writer].op;
  LinearForm write = schedule->getAccess(
      writer, *op.getDpsInitOperand(cast<OpResult>(written).getResultNumber()));
  // Up to the writer's nest, reads are at the point that is written later;
  // within a nest's body loads come before stores.
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
