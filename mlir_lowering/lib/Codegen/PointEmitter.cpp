//===- PointEmitter.cpp - Values at one point of a nest -------------------===//

#include "LoopEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Computes offset + sum of stride * index. The innermost loop's term is added
/// last, because the other terms are invariant in that loop.
Value LoopEmitter::linearIndex(const LinearForm &form) {
  Value sum;
  auto add = [&](Value term) {
    sum =
        sum ? arith::AddIOp::create(builder, loc, sum, term).getResult() : term;
  };
  auto addAxis = [&](unsigned axis) {
    int64_t stride = form.strides[axis];
    if (stride == 0 || !index[axis])
      return;
    Value term = index[axis];
    if (stride != 1)
      term = arith::MulIOp::create(builder, loc, term, constantIndex(stride));
    add(term);
  };
  if (form.offset != 0)
    add(constantIndex(form.offset));
  for (unsigned axis = 0; axis < form.strides.size(); ++axis)
    if (axis != vectorAxis)
      addAxis(axis);
  if (vectorAxis)
    addAxis(*vectorAxis);
  return sum ? sum : constantIndex(0);
}

Value LoopEmitter::loadElement(Value memory, Value element, Type type) {
  Value value = memref::LoadOp::create(builder, loc, memory, element);
  if (!type.isInteger(1))
    return value;
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getIntegerAttr(value.getType(), 0));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value,
                               zero);
}

Value LoopEmitter::load(Value memory, const LinearForm &form, Type type) {
  for (auto &[otherMemory, otherForm, value] : loads)
    if (otherMemory == memory && otherForm.offset == form.offset &&
        otherForm.strides == form.strides)
      return value;
  auto tile = llvm::find_if(tiles, [&](const Tile &other) {
    return other.source == memory && other.form.offset == form.offset &&
           other.form.strides == form.strides;
  });
  Value value = tile == tiles.end()
                    ? loadElement(memory, linearIndex(form), type)
                    : loadElement(tile->memory, tileElement(), type);
  loads.push_back({memory, form, value});
  return value;
}

void LoopEmitter::store(Value value, Value memory, const LinearForm &form) {
  if (value.getType().isInteger(1))
    value = arith::ExtUIOp::create(builder, loc, builder.getI8Type(), value);
  memref::StoreOp::create(builder, loc, value, memory, linearIndex(form));
}

LinearForm LoopEmitter::temporaryForm(const Temporary &temporary) {
  return {0, temporary.strides};
}

void LoopEmitter::storeResult(unsigned member, unsigned number, Value value) {
  OpResult result = opOf(member)->getResult(number);
  if (!isKept(member))
    iterationScalars[result] = value;
  if (schedule.getResultIndex(result)) {
    store(value, buffers.lookup(result),
          schedule.getAccess(member, *opOf(member).getDpsInitOperand(number)));
    return;
  }
  if (auto temporary = temporaries.find(result); temporary != temporaries.end())
    store(value, temporary->second.memory, temporaryForm(temporary->second));
}

/// Loads a value that an earlier nest has stored.
Value LoopEmitter::loadStored(unsigned consumer, OpOperand &operand,
                              OpResult root) {
  Type type = getElementTypeOrSelf(root.getType());
  if (auto temporary = temporaries.find(root); temporary != temporaries.end())
    return load(temporary->second.memory, temporaryForm(temporary->second),
                type);
  return load(buffers.lookup(root), schedule.getAccess(consumer, operand),
              type);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value LoopEmitter::valueOf(unsigned member, OpOperand &operand) {
  Value root = KernelSchedule::getRoot(operand.get());
  // Scalars, fills and splats have no memory.
  if (Value scalar = scalars.lookupOrNull(root))
    return scalar;
  if (auto it = pointValues.find(root); it != pointValues.end())
    return it->second;
  std::optional<unsigned> producer = schedule.getProducer(root);
  if (!producer)
    return load(buffers.lookup(root), schedule.getAccess(member, operand),
                getElementTypeOrSelf(operand.get().getType()));
  if (schedule.isStored(*producer)) {
    if (auto it = iterationScalars.find(root); it != iterationScalars.end())
      return it->second;
    return loadStored(member, operand, cast<OpResult>(root));
  }
  SmallVector<Value> values = evaluate(*producer, {});
  for (auto [result, value] :
       llvm::zip_equal(opOf(*producer)->getResults(), values))
    pointValues[result] = value;
  return pointValues.lookup(root);
}

Value LoopEmitter::initialValue(unsigned member, unsigned result) {
  OpOperand *init = opOf(member).getDpsInitOperand(result);
  if (init->get().getDefiningOp<tensor::EmptyOp>()) {
    // The initial value is undefined; zero is as valid as any other.
    Type type = getElementTypeOrSelf(init->get().getType());
    return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  }
  return valueOf(member, *init);
}

/// Allows LLVM to reorder sums and products in `accumulator`, so that it can
/// use vector and interleaved accumulators.
static void allowReordering(Operation *op, Value accumulator) {
  if (!llvm::is_contained(op->getOperands(), accumulator))
    return;
  auto reorder = arith::FastMathFlags::reassoc;
  if (auto add = dyn_cast<arith::AddFOp>(op))
    add.setFastmath(add.getFastmath() | reorder);
  else if (auto mul = dyn_cast<arith::MulFOp>(op))
    mul.setFastmath(mul.getFastmath() | reorder);
}

Value LoopEmitter::loadExtracted(tensor::ExtractOp extract,
                                 ValueRange indices) {
  // Fills and splats (possibly behind reshapes) and tensors with undefined
  // elements have no memory. In a cloned op, such a tensor may already have
  // been replaced by its value.
  Value source = extract->getOperand(0);
  if (!isa<RankedTensorType>(source.getType()))
    return source;
  Value root = KernelSchedule::getRoot(source);
  if (Value uniform = scalars.lookupOrNull(root))
    return uniform;
  if (auto fill = root.getDefiningOp<linalg::FillOp>())
    return scalars.lookup(fill.value());
  if (root.getDefiningOp<tensor::EmptyOp>())
    return arith::ConstantOp::create(builder, loc,
                                     builder.getZeroAttr(extract.getType()));
  Value element;
  auto shape = extract.getTensor().getType().getShape();
  for (auto [size, i] : llvm::zip_equal(shape, indices)) {
    if (!element) {
      element = i;
      continue;
    }
    element = arith::MulIOp::create(builder, loc, element, constantIndex(size));
    element = arith::AddIOp::create(builder, loc, element, i);
  }
  return loadElement(
      buffers.lookup(KernelSchedule::getRoot(extract.getTensor())),
      element ? element : constantIndex(0), extract.getType());
}

/// Replaces each linalg.index and tensor.extract in `op`, including `op`
/// itself, by the index or the loaded element. Returns the value that replaces
/// `op`, or null if `op` is neither.
Value LoopEmitter::replaceReads(Operation *op, unsigned member) {
  const FusionDomain &domain = schedule.getDomain();
  Value ofOp;
  OpBuilder::InsertionGuard guard(builder);
  op->walk([&](Operation *nested) {
    builder.setInsertionPoint(nested);
    Value value;
    if (auto i = dyn_cast<linalg::IndexOp>(nested))
      value = linearIndex(schedule.overAxes(
          domain.getLoopIndex(domain.getMembers()[member], i.getDim())));
    else if (auto extract = dyn_cast<tensor::ExtractOp>(nested))
      value = loadExtracted(extract, extract.getIndices());
    else
      return;
    nested->replaceAllUsesWith(ValueRange(value));
    if (nested == op)
      ofOp = value;
    nested->erase();
  });
  return ofOp;
}

SmallVector<Value> LoopEmitter::evaluate(unsigned member,
                                         ArrayRef<Value> accumulators) {
  linalg::GenericOp op = opOf(member);
  Block *body = op.getBody();
  IRMapping mapping(scalars);
  SmallVector<Value> inits;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(operand);
    if (!argument.use_empty())
      mapping.map(argument, valueOf(member, *operand));
  }
  for (unsigned r = 0; r < op.getNumDpsInits(); ++r) {
    BlockArgument argument = op.getRegionOutputArgs()[r];
    Value value = !accumulators.empty()   ? accumulators[r]
                  : !argument.use_empty() ? initialValue(member, r)
                                          : Value();
    if (value)
      mapping.map(argument, value);
    inits.push_back(value);
  }
  for (Operation &inner : body->without_terminator()) {
    Operation *clone = builder.clone(inner, mapping);
    for (Value accumulator : accumulators)
      allowReordering(clone, accumulator);
    if (Value replaced = replaceReads(clone, member))
      mapping.map(inner.getResult(0), replaced);
  }
  SmallVector<Value> results;
  for (Value yielded : body->getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(yielded));
  return results;
}
