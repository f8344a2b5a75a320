//===- LoopEmitter.cpp - Scheduled kernels as loops -----------------------===//
//
// Emits the function, its iterations and its memory. NestEmitter.cpp emits
// nests, PointEmitter.cpp values at a point, TileEmitter.cpp tiles.
//
//===----------------------------------------------------------------------===//

#include "LoopEmitter.h"

#include "torch_ltc/Kernels/TargetCostModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::torch_ltc;

static MemRefType memoryType(Type type) {
  int64_t elements = 1;
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    elements = tensor.getNumElements();
    type = tensor.getElementType();
  }
  if (type.isInteger(1))
    type = IntegerType::get(type.getContext(), 8);
  return MemRefType::get({elements}, type);
}

void LoopEmitter::emit() {
  createFunction();
  cloneScalarCode();
  createTemporaries();
  createWideSums();
  createTiles();
  emitIterations();
  freeTemporaries();
  func::ReturnOp::create(builder, loc);
  kernel.erase();
}

Value LoopEmitter::constantIndex(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

void LoopEmitter::createFunction() {
  SmallVector<Type> types;
  FunctionType type = kernel.getFunctionType();
  for (Type t : llvm::concat<const Type>(type.getInputs(), type.getResults()))
    types.push_back(memoryType(t));
  types.append(2, builder.getIndexType());
  builder.setInsertionPoint(kernel);
  lowered = func::FuncOp::create(builder, loc, kernel.getName(),
                                 builder.getFunctionType(types, {}));
  Block *entry = lowered.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  begin = entry->getArgument(types.size() - 2);
  end = entry->getArgument(types.size() - 1);

  // A result that overwrites an operand uses the operand's argument, and its
  // own argument is never accessed. So no two accessed arguments alias.
  unsigned operandCount = type.getNumInputs();
  for (unsigned i = 0; i + 2 < types.size(); ++i)
    lowered.setArgAttr(i, "llvm.noalias", builder.getUnitAttr());
  for (unsigned i = 0; i < operandCount; ++i)
    if (isa<RankedTensorType>(type.getInput(i)))
      buffers[kernel.getArgument(i)] = entry->getArgument(i);
  Operation *terminator = kernel.getBody().front().getTerminator();
  for (auto [i, result] : llvm::enumerate(terminator->getOperands())) {
    bool isOver = i < aliases.size() && aliases[i] >= 0;
    unsigned argument = isOver ? aliases[i] : operandCount + i;
    buffers[KernelSchedule::getRoot(result)] = entry->getArgument(argument);
  }
}

void LoopEmitter::cloneScalarCode() {
  Block &from = kernel.getBody().front();
  for (BlockArgument argument : from.getArguments())
    if (!isa<RankedTensorType>(argument.getType()))
      scalars.map(argument, memref::LoadOp::create(
                                builder, loc,
                                lowered.getArgument(argument.getArgNumber()),
                                constantIndex(0))
                                .getResult());
  for (Operation &op : from.without_terminator()) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      SmallVector<Value> indices;
      for (Value i : extract.getIndices())
        indices.push_back(scalars.lookup(i));
      scalars.map(extract.getResult(), loadExtracted(extract, indices));
      continue;
    }
    DenseElementsAttr elements;
    if (op.getNumResults() == 1 && matchPattern(&op, m_Constant(&elements)) &&
        elements.isSplat())
      scalars.map(op.getResult(0),
                  arith::ConstantOp::create(
                      builder, loc,
                      cast<TypedAttr>(elements.getSplatValue<Attribute>()))
                      .getResult());
    else if (op.getNumRegions() == 0 &&
             llvm::none_of(op.getResultTypes(), llvm::IsaPred<TensorType>))
      builder.clone(op, scalars);
  }
  // A fill is replaced by its value.
  for (auto fill : from.getOps<linalg::FillOp>())
    scalars.map(fill.getResult(0), scalars.lookup(fill.value()));
}

/// Whether the member computes several elements in one iteration, so that later
/// nests read them from memory.
bool LoopEmitter::isKept(unsigned member) {
  return llvm::any_of(schedule.getInnerAxes(member), [&](unsigned axis) {
    return !schedule.isReduced(member, axis);
  });
}

/// Creates memory for a value of a member, indexed by the axes over which the
/// member isn't reduced.
LoopEmitter::Temporary LoopEmitter::createTemporary(unsigned member,
                                                    Type element) {
  Temporary temporary;
  temporary.strides.assign(schedule.getAxes().size(), 0);
  int64_t elements = 1;
  for (unsigned axis : llvm::reverse(schedule.getInnerAxes(member))) {
    if (schedule.isReduced(member, axis))
      continue;
    temporary.strides[axis] = elements;
    elements *= schedule.getAxes()[axis].size;
  }
  MemRefType type = memoryType(RankedTensorType::get({elements}, element));
  int64_t bytes = elements * type.getElementTypeBitWidth() / 8;
  // In a kernel for all sizes, a size may be below the limit in one sample and
  // above it in another; no stand-in of a size is as small as this.
  int64_t most = varyingAxes ? 32 : TargetCostModel::stackBytes;
  IntegerAttr alignment = builder.getI64IntegerAttr(64);
  if (bytes <= most) {
    temporary.memory = memref::AllocaOp::create(builder, loc, type, alignment);
  } else {
    temporary.memory = memref::AllocOp::create(builder, loc, type, alignment);
    allocations.push_back(temporary.memory);
  }
  return temporary;
}

void LoopEmitter::createTemporaries() {
  for (unsigned member = 0; member < schedule.getDomain().getMembers().size();
       ++member) {
    if (!schedule.isStored(member) || !isKept(member))
      continue;
    for (OpResult result : opOf(member)->getResults())
      if (!schedule.getResultIndex(result))
        temporaries[result] =
            createTemporary(member, getElementTypeOrSelf(result.getType()));
  }
}

/// Stores a long sum in f64 if each point of the nest adds its term to the sum
/// in memory. Partial sums would limit the rounding error as well, but would
/// also need more memory.
void LoopEmitter::createWideSums() {
  constexpr int64_t fewTerms = 256;
  for (const Nest &nest : schedule.getNests())
    for (const Accumulation &accumulation : findAccumulations(nest)) {
      int64_t terms = 1;
      for (unsigned axis : nest.axes)
        if (schedule.isReduced(accumulation.member, axis))
          terms *= schedule.getAxes()[axis].size;
      Value result = opOf(accumulation.member)->getResult(0);
      if (accumulation.isSum && accumulation.startsInMemory &&
          terms > fewTerms && getElementTypeOrSelf(result.getType()).isF32())
        wideSums[accumulation.member] =
            createTemporary(accumulation.member, builder.getF64Type());
    }
}

void LoopEmitter::freeTemporaries() {
  for (Value memory : allocations)
    memref::DeallocOp::create(builder, loc, memory);
}

void LoopEmitter::emitIterations() {
  std::optional<unsigned> split = schedule.getSplitAxis();
  if (schedule.getOuterAxes().empty() && !schedule.getTileAxis()) {
    // The range of iterations is one range of the split axis, and so becomes
    // one long loop.
    if (split) {
      Value block = constantIndex(schedule.getBlockSize());
      blockLow = arith::MulIOp::create(builder, loc, begin, block);
      blockHigh = arith::MulIOp::create(builder, loc, end, block);
      blockHigh = arith::MinSIOp::create(
          builder, loc, blockHigh,
          constantIndex(schedule.getAxes()[*split].size));
    }
    emitNests();
    return;
  }
  auto loop = scf::ForOp::create(builder, loc, begin, end, constantIndex(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  setOuterIndices(loop.getInductionVar());
  emitNests();
}

std::pair<Value, Value> LoopEmitter::blockBounds(Value block, int64_t blockSize,
                                                 unsigned axis) {
  int64_t size = schedule.getAxes()[axis].size;
  Value step = constantIndex(blockSize);
  Value low = arith::MulIOp::create(builder, loc, block, step);
  Value high = arith::AddIOp::create(builder, loc, low, step);
  if (!isWhole(axis, blockSize))
    high = arith::MinSIOp::create(builder, loc, high, constantIndex(size));
  return {low, high};
}

/// Computes the indices of the outer axes and the bounds of the blocks from the
/// index of the iteration.
void LoopEmitter::setOuterIndices(Value iteration) {
  std::optional<unsigned> split = schedule.getSplitAxis();
  std::optional<unsigned> tile = schedule.getTileAxis();
  int64_t blocks = schedule.getNumBlocks();
  // For each axis, innermost first: its size, and where to store its index.
  SmallVector<std::pair<int64_t, Value *>> parts;
  Value block = constantIndex(0), tileBlock;
  if (split && blocks > 1)
    parts.push_back({blocks, &block});
  if (tile)
    parts.push_back({llvm::divideCeil(schedule.getAxes()[*tile].size,
                                      KernelSchedule::kTileSize),
                     &tileBlock});
  for (unsigned axis : llvm::reverse(schedule.getOuterAxes()))
    parts.push_back({schedule.getAxes()[axis].size, &index[axis]});
  Value rest = iteration;
  for (auto [size, part] : ArrayRef(parts).drop_back()) {
    Value divisor = constantIndex(size);
    *part = arith::RemUIOp::create(builder, loc, rest, divisor);
    rest = arith::DivUIOp::create(builder, loc, rest, divisor);
  }
  *parts.back().second = rest;
  if (split)
    std::tie(blockLow, blockHigh) =
        blockBounds(block, schedule.getBlockSize(), *split);
  if (tile)
    std::tie(tileLow, tileHigh) =
        blockBounds(tileBlock, KernelSchedule::kTileSize, *tile);
}

void LoopEmitter::emitNests() {
  iterationScalars.clear();
  fillTiles();
  for (const Nest &nest : schedule.getNests())
    emitNest(nest);
}
