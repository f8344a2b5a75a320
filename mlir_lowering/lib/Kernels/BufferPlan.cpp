//===- BufferPlan.cpp - Location of each value of the program -------------===//

#include "torch_ltc/Kernels/BufferPlan.h"

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Kernels/Program.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::torch_ltc;

namespace {

class PlanReader {
public:
  explicit PlanReader(func::FuncOp program) : program(program) {}

  FailureOr<BufferPlan> run() {
    auto arena = program->getAttrOfType<IntegerAttr>(kArenaBytesAttr);
    if (!arena)
      return program.emitError("@")
             << program.getName()
             << " has no buffer plan; ltc-mlir-plan-buffers creates one";
    plan.arenaBytes = arena.getInt();
    addArguments();
    for (Operation &op : program.getBody().front().without_terminator()) {
      OpRole role = getRole(&op);
      if (role == OpRole::Constant)
        addConstant(&op);
      else if (role == OpRole::Call && failed(addCommand(&op)))
        return failure();
    }
    if (failed(addOutputs()))
      return failure();
    return std::move(plan);
  }

private:
  using Place = PlannedBuffer::Place;

  unsigned addBuffer(PlannedBuffer buffer) {
    plan.buffers.push_back(buffer);
    return plan.buffers.size() - 1;
  }

  void addArguments() {
    unsigned tensors = 0, scalars = 0;
    for (BlockArgument argument : program.getArguments()) {
      bool isTensor = isa<RankedTensorType>(argument.getType());
      plan.parts[argument].buffer =
          addBuffer({isTensor ? Place::Parameter : Place::Scalar,
                     isTensor ? tensors++ : scalars++,
                     getTensorBytes(argument.getType())});
    }
  }

  void addConstant(Operation *op) {
    DenseElementsAttr elements;
    matchPattern(op, m_Constant(&elements));
    unsigned index = plan.constants.size();
    plan.constants.push_back(elements);
    plan.parts[op->getResult(0)].buffer =
        addBuffer({Place::Constant, index, getTensorBytes(elements.getType())});
  }

  LogicalResult addCommand(Operation *op) {
    for (Value operand : op->getOperands())
      plan.parts[operand] = partOf(operand);
    if (isa<ltc::CheckBoundsOp>(op)) {
      plan.parts[op->getResult(0)] = partOf(op->getResult(0));
      return success();
    }
    auto places = op->getAttrOfType<ArrayAttr>(kPlacesAttr);
    if (!places || places.size() != op->getNumResults())
      return op->emitOpError("needs a place for each result in '")
             << kPlacesAttr << "'";
    for (auto [attribute, result] : llvm::zip_equal(places, op->getResults())) {
      FailureOr<BufferPart> part = resolve(op, attribute);
      if (failed(part))
        return failure();
      plan.parts[result] = *part;
    }
    return success();
  }

  /// Returns the buffer part of a value, which may be a view of a value in
  /// `plan.parts`.
  BufferPart partOf(Value value) {
    auto [root, offset] = lookThroughViews(value);
    BufferPart part = plan.parts.at(root);
    return {part.buffer, part.offset + offset};
  }

  FailureOr<BufferPart> resolve(Operation *op, Attribute attribute) {
    auto place = dyn_cast_or_null<ltc::PlaceAttr>(attribute);
    if (!place)
      return op->emitOpError("has no place where #ltc.place is expected");
    unsigned number = place.getNumber();
    if (place.isArena()) {
      if (place.getNumber() + place.getBytes() > plan.arenaBytes)
        return op->emitOpError("is outside the arena: ") << place;
      auto [entry, isNew] = ranges.try_emplace(place.getWhole());
      if (isNew)
        entry->second =
            addBuffer({Place::Arena, 0, place.getBytes(), place.getNumber(),
                       place.getFirst(), place.getLast()});
      return BufferPart{entry->second, place.getPart()};
    }
    if (place.isParameter() && number < program.getNumArguments())
      return BufferPart{plan.parts[program.getArgument(number)].buffer,
                        place.getPart()};
    if (place.isOutput() && number < program.getNumResults()) {
      auto [entry, isNew] = ownOutputs.try_emplace(number);
      if (isNew)
        entry->second =
            addBuffer({Place::Output, number,
                       getTensorBytes(program.getResultTypes()[number])});
      return BufferPart{entry->second, place.getPart()};
    }
    return op->emitOpError("refers to a place that the program doesn't have: ")
           << place;
  }

  LogicalResult addOutputs() {
    Operation *terminator = program.getBody().front().getTerminator();
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      auto place =
          program.getResultAttrOfType<ltc::PlaceAttr>(index, kPlaceAttr);
      FailureOr<BufferPart> part = resolve(terminator, place);
      if (failed(part))
        return failure();
      PlannedOutput output;
      output.part = *part;
      output.bytes = getTensorBytes(value.getType());
      if (auto updated =
              program.getResultAttrOfType<IntegerAttr>(index, kUpdatesAttr))
        output.updatedParameter =
            parameterIndex(program.getArgument(updated.getInt()));
      Value root = lookThroughViews(value).first;
      if (place.isParameter()) {
        unsigned parameter =
            parameterIndex(program.getArgument(place.getNumber()));
        (isa<BlockArgument>(root) ? output.forwardedParameter
                                  : output.donatedParameter) = parameter;
      }
      if (BufferPart current = partOf(value); !(current == output.part))
        output.copyFrom = current;
      plan.outputs.push_back(output);
    }
    return success();
  }

  unsigned parameterIndex(BlockArgument argument) {
    return plan.buffers[plan.parts[argument].buffer].index;
  }

  func::FuncOp program;
  BufferPlan plan;
  DenseMap<ltc::PlaceAttr, unsigned> ranges;
  DenseMap<unsigned, unsigned> ownOutputs;
};

} // namespace

SmallVector<CopiedPart> BufferPlan::getCopiedParts(ltc::JoinOp join) const {
  SmallVector<CopiedPart> copied;
  BufferPart destination = parts.at(join.getWhole());
  for (Value part : join.getParts()) {
    BufferPart source = parts.at(part);
    if (source.buffer != destination.buffer ||
        source.offset != destination.offset)
      copied.push_back({part, destination});
    destination.offset += getTensorBytes(part.getType());
  }
  return copied;
}

FailureOr<BufferPlan> BufferPlan::read(func::FuncOp program) {
  return PlanReader(program).run();
}
