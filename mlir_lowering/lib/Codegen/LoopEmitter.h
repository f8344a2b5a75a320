//===- LoopEmitter.h - Scheduled kernels as loops ---------------*- C++ -*-===//

#ifndef TORCH_LTC_LIB_CODEGEN_LOOPEMITTER_H
#define TORCH_LTC_LIB_CODEGEN_LOOPEMITTER_H

#include "torch_ltc/Kernels/KernelSchedule.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::torch_ltc {

/// Rewrites a kernel on tensors as a function with scf loops. The function's
/// arguments are a one-dimensional contiguous memref for each argument and
/// result of the kernel, and the range [begin, end) of iterations. Booleans are
/// i8 in memory.
class LoopEmitter {
public:
  /// `aliases` as in KernelCompiler::compile.
  LoopEmitter(func::FuncOp kernel, const KernelSchedule &schedule,
              ArrayRef<int64_t> aliases)
      : kernel(kernel), schedule(schedule), aliases(aliases),
        builder(kernel.getContext()), loc(kernel.getLoc()),
        varyingAxes(kernel->getAttrOfType<DenseI64ArrayAttr>(kVaryingAxesAttr)),
        index(schedule.getAxes().size()) {}

  /// Replaces the kernel by a function of the same name.
  void emit();

private:
  /// The memory that holds a value between nests, with a stride for each axis.
  struct Temporary {
    Value memory;
    SmallVector<int64_t> strides;
  };
  /// A transposed operand and the location of its current tile.
  struct Tile {
    Value source;
    LinearForm form;
    Value memory; ///< [tile axis][split axis]
  };
  /// The reduction of one member of a nest.
  struct Accumulation {
    unsigned member;
    /// Loops from this level on carry the accumulators in registers. If every
    /// point updates memory, this is the number of loops.
    unsigned level;
    /// Whether memory holds the initial value before the nest starts.
    bool startsInMemory;
    /// Whether the reduction is a floating-point sum. Sums are computed in
    /// parts, so that errors grow with the number of levels instead of terms.
    bool isSum;
    SmallVector<Value> values;
  };
  /// Maximum numbers of terms added without a wider accumulator. The first is
  /// for loops that LLVM vectorizes: they have an accumulator for each element
  /// of several vectors. The second is for other loops. A sum over an axis that
  /// varies always has a loop over blocks, because the form of the loops must
  /// not depend on the stand-ins.
  static constexpr int64_t kVectorSumBlock = 4096, kSumBlock = 64;

  void createFunction();
  void cloneScalarCode();
  Temporary createTemporary(unsigned member, Type element);
  void createTemporaries();
  void createWideSums();
  void freeTemporaries();
  void emitIterations();
  void setOuterIndices(Value iteration);
  void emitNests();
  std::pair<Value, Value> blockBounds(Value block, int64_t blockSize,
                                      unsigned axis);

  // Tiles of transposed operands.
  void createTiles();
  void fillTiles();
  void transposeBlocks(Value source, const LinearForm &form, Value tile);
  void copyTransposed(Value source, const LinearForm &form, Value tile);
  Value tileElement();

  // Nests.
  void emitNest(const Nest &nest);
  void emitInitialValues(const Nest &nest, const Accumulation &accumulation);
  void emitWideResults(const Nest &nest, const Accumulation &accumulation);
  void enterKeptLoops(const Nest &nest, unsigned member);
  void emitLevel(const Nest &nest, unsigned level,
                 SmallVectorImpl<Accumulation> &accumulations);
  bool canBeVectorized(const Nest &nest);
  void emitBlocks(const Nest &nest, unsigned level, Value low, Value high,
                  SmallVectorImpl<Accumulation> &accumulations,
                  function_ref<void()> body);
  void emitLoop(const Nest &nest, unsigned level, Value low, Value high,
                int64_t step, bool isWide,
                SmallVectorImpl<Accumulation> &accumulations,
                function_ref<void()> body);
  void emitPoint(const Nest &nest,
                 SmallVectorImpl<Accumulation> &accumulations);
  void emitInstance(const Nest &nest,
                    SmallVectorImpl<Accumulation> &accumulations);
  void finishAccumulation(const Accumulation &accumulation);
  SmallVector<Accumulation> findAccumulations(const Nest &nest);
  int64_t chooseJam(const Nest &nest, unsigned level,
                    ArrayRef<Accumulation> accumulations);
  std::pair<Value, Value> boundsOf(unsigned axis);
  Value roundDown(unsigned axis, int64_t step);

  // Values at the current point.
  Value valueOf(unsigned member, OpOperand &operand);
  SmallVector<Value> evaluate(unsigned member, ArrayRef<Value> accumulators);
  Value initialValue(unsigned member, unsigned result);
  Value replaceReads(Operation *op, unsigned member);
  Value loadExtracted(tensor::ExtractOp extract, ValueRange indices);
  Value load(Value memory, const LinearForm &form, Type type);
  void store(Value value, Value memory, const LinearForm &form);
  Value loadElement(Value memory, Value element, Type type);
  Value linearIndex(const LinearForm &form);
  void storeResult(unsigned member, unsigned result, Value value);
  Value loadStored(unsigned consumer, OpOperand &operand, OpResult root);
  LinearForm temporaryForm(const Temporary &temporary);
  bool isKept(unsigned member);
  bool isSum(unsigned member);
  Value zeroOf(Type type);
  Value loadWide(unsigned member);
  void storeWide(unsigned member, Value value);
  Value widen(Value value);
  Value narrow(Value value, Type type);

  linalg::GenericOp opOf(unsigned member) const {
    return schedule.getDomain().getMembers()[member].op;
  }
  Value constantIndex(int64_t value);
  /// Whether the axis' size is a stand-in.
  bool isVarying(unsigned axis) const {
    return varyingAxes && llvm::is_contained(varyingAxes.asArrayRef(), axis);
  }
  /// Whether the axis consists of whole blocks at all sizes.
  bool isWhole(unsigned axis, int64_t block) const {
    return !isVarying(axis) && schedule.getAxes()[axis].size % block == 0;
  }

  func::FuncOp kernel, lowered;
  const KernelSchedule &schedule;
  ArrayRef<int64_t> aliases;
  OpBuilder builder;
  Location loc;
  DenseI64ArrayAttr varyingAxes; ///< null unless the kernel is for all sizes
  Value begin, end;
  Value blockLow, blockHigh;          ///< of the split axis
  Value tileLow, tileHigh;            ///< of the tile axis
  SmallVector<Value> index;           ///< by axis, at the current point
  std::optional<unsigned> vectorAxis; ///< innermost loop of the current nest
  int64_t jam = 1;                    ///< points of `jamAxis` in one body
  unsigned jamAxis = 0;
  IRMapping scalars;              ///< scalar code, at the entry
  DenseMap<Value, Value> buffers; ///< memory of arguments and results
  DenseMap<Value, Temporary> temporaries;
  DenseMap<unsigned, Temporary> wideSums; ///< f64, by member
  SmallVector<Tile> tiles;
  SmallVector<Value> allocations;
  DenseMap<Value, Value> iterationScalars; ///< values without inner axes
  DenseMap<Value, Value> pointValues;      ///< of the current instance
  /// Loads of the current instance: memory, location and value.
  SmallVector<std::tuple<Value, LinearForm, Value>> loads;
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CODEGEN_LOOPEMITTER_H
