//===- TileEmitter.cpp - Transposed operands, tile by tile ----------------===//
//
// Reading a matrix across its rows touches a cache line for each element, and
// with power-of-two sizes all these lines compete for a few cache sets.
// Therefore a tile of the operand is read along its rows and transposed into a
// small buffer, which the nests then read in their own order.
//
//===----------------------------------------------------------------------===//

#include "LoopEmitter.h"

#include "torch_ltc/Kernels/TargetCostModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::torch_ltc;

static constexpr int64_t tileSize = KernelSchedule::kTileSize;
static constexpr int64_t blockSize = TargetCostModel::transposedBlock;

void LoopEmitter::createTiles() {
  if (!schedule.getTileAxis())
    return;
  for (const Nest &nest : schedule.getNests())
    schedule.forEachRead(nest, [&](unsigned member, OpOperand &operand) {
      Value memory = buffers.lookup(KernelSchedule::getRoot(operand.get()));
      bool isInput = !opOf(member).isDpsInit(&operand);
      if (!memory || !isInput ||
          tiles.size() >= TargetCostModel::transposedTiles ||
          schedule.getProducer(KernelSchedule::getRoot(operand.get())))
        return;
      LinearForm form = schedule.getAccess(member, operand);
      bool isKnown = llvm::any_of(tiles, [&](const Tile &tile) {
        return tile.source == memory && tile.form.offset == form.offset &&
               tile.form.strides == form.strides;
      });
      if (isKnown || !schedule.isTransposed(form))
        return;
      auto type =
          MemRefType::get({tileSize * tileSize},
                          cast<MemRefType>(memory.getType()).getElementType());
      Value tile = memref::AllocaOp::create(builder, loc, type,
                                            builder.getI64IntegerAttr(64));
      tiles.push_back({memory, std::move(form), tile});
    });
}

void LoopEmitter::fillTiles() {
  for (const Tile &tile : tiles) {
    unsigned axis = *schedule.getTileAxis(), split = *schedule.getSplitAxis();
    auto type = cast<MemRefType>(tile.source.getType());
    bool isVector = type.getElementTypeBitWidth() == 32;
    bool isUniform = isWhole(axis, tileSize) && isWhole(split, tileSize);
    if (!isVector) {
      copyTransposed(tile.source, tile.form, tile.memory);
      continue;
    }
    if (isUniform) {
      transposeBlocks(tile.source, tile.form, tile.memory);
      continue;
    }
    auto isFull = [&](Value low, Value high) {
      Value size = arith::SubIOp::create(builder, loc, high, low);
      return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, size,
                                   constantIndex(tileSize));
    };
    Value full = arith::AndIOp::create(
        builder, loc, isFull(blockLow, blockHigh), isFull(tileLow, tileHigh));
    auto branch = scf::IfOp::create(builder, loc, full, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    transposeBlocks(tile.source, tile.form, tile.memory);
    builder.setInsertionPointToStart(branch.elseBlock());
    copyTransposed(tile.source, tile.form, tile.memory);
  }
}

/// Transposes `rows`, 16 vectors of 16 elements, in four rounds. Each round
/// interleaves the first half of the rows with the second.
static void transposeRows(OpBuilder &builder, Location loc,
                          SmallVectorImpl<Value> &rows) {
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < blockSize / 2; ++i) {
    low.append({i, blockSize + i});
    high.append({blockSize / 2 + i, blockSize + blockSize / 2 + i});
  }
  for (int64_t round = 1; round < blockSize; round *= 2) {
    SmallVector<Value> next;
    for (int64_t i = 0; i < blockSize / 2; ++i)
      for (ArrayRef<int64_t> mask : {ArrayRef(low), ArrayRef(high)})
        next.push_back(vector::ShuffleOp::create(
            builder, loc, rows[i], rows[i + blockSize / 2], mask));
    rows = next;
  }
}

void LoopEmitter::transposeBlocks(Value source, const LinearForm &form,
                                  Value tile) {
  unsigned axis = *schedule.getTileAxis(), split = *schedule.getSplitAxis();
  auto type = VectorType::get(
      {blockSize}, cast<MemRefType>(source.getType()).getElementType());
  OpBuilder::InsertionGuard guard(builder);
  Value zero = constantIndex(0), size = constantIndex(tileSize),
        step = constantIndex(blockSize);
  auto columns = scf::ForOp::create(builder, loc, zero, size, step);
  builder.setInsertionPointToStart(columns.getBody());
  auto rowsLoop = scf::ForOp::create(builder, loc, zero, size, step);
  builder.setInsertionPointToStart(rowsLoop.getBody());
  Value column = columns.getInductionVar(), row = rowsLoop.getInductionVar();
  index[axis] = arith::AddIOp::create(builder, loc, tileLow, row);
  SmallVector<Value> vectors;
  for (int64_t i = 0; i < blockSize; ++i) {
    Value local = arith::AddIOp::create(builder, loc, column, constantIndex(i));
    index[split] = arith::AddIOp::create(builder, loc, blockLow, local);
    vectors.push_back(
        vector::LoadOp::create(builder, loc, type, source, linearIndex(form)));
  }
  transposeRows(builder, loc, vectors);
  for (int64_t i = 0; i < blockSize; ++i) {
    Value at = arith::AddIOp::create(builder, loc, row, constantIndex(i));
    at = arith::MulIOp::create(builder, loc, at, size);
    at = arith::AddIOp::create(builder, loc, at, column);
    vector::StoreOp::create(builder, loc, vectors[i], tile, at);
  }
}

/// Transposes a tile of any size and element type, element by element.
void LoopEmitter::copyTransposed(Value source, const LinearForm &form,
                                 Value tile) {
  unsigned axis = *schedule.getTileAxis(), split = *schedule.getSplitAxis();
  OpBuilder::InsertionGuard guard(builder);
  Value one = constantIndex(1);
  auto columns = scf::ForOp::create(builder, loc, blockLow, blockHigh, one);
  builder.setInsertionPointToStart(columns.getBody());
  auto rows = scf::ForOp::create(builder, loc, tileLow, tileHigh, one);
  builder.setInsertionPointToStart(rows.getBody());
  index[split] = columns.getInductionVar();
  index[axis] = rows.getInductionVar();
  Value element =
      memref::LoadOp::create(builder, loc, source, linearIndex(form));
  memref::StoreOp::create(builder, loc, element, tile, tileElement());
}

/// The position of the current point in a tile.
Value LoopEmitter::tileElement() {
  Value row = arith::SubIOp::create(builder, loc,
                                    index[*schedule.getTileAxis()], tileLow);
  Value column = arith::SubIOp::create(
      builder, loc, index[*schedule.getSplitAxis()], blockLow);
  row = arith::MulIOp::create(builder, loc, row, constantIndex(tileSize));
  return arith::AddIOp::create(builder, loc, row, column);
}
