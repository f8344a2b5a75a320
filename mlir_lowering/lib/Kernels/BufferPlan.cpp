//===- BufferPlan.cpp - Where each value of the program lies --------------===//

#include "torch_ltc/Kernels/BufferPlan.h"

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Kernels/Program.h"

#include "mlir/IR/Matchers.h"

#include <climits>

using namespace mlir;
using namespace mlir::torch_ltc;

namespace {

/// An arena range before it has an offset.
struct LiveRange {
  unsigned buffer;
  int64_t bytes;
  int begin, end; ///< call numbers, both included
  int64_t offset = -1;
};

class Planner {
public:
  explicit Planner(func::FuncOp program)
      : program(program), symbols(program->getParentOfType<ModuleOp>()) {}

  FailureOr<BufferPlan> run() {
    addArguments();
    if (failed(numberCalls()))
      return failure();
    placeParts();
    findLastReads();
    placeOutputs();
    placeTemporaries();
    assignOffsets();
    finishOutputs();
    return std::move(plan);
  }

private:
  using Place = PlannedBuffer::Place;

  unsigned addBuffer(Place place, unsigned index, int64_t bytes) {
    plan.buffers.push_back({place, index, 0, bytes});
    return plan.buffers.size() - 1;
  }

  void addArguments() {
    unsigned tensors = 0, scalars = 0;
    for (BlockArgument argument : program.getArguments()) {
      bool isTensor = isa<RankedTensorType>(argument.getType());
      int64_t bytes = getTensorBytes(argument.getType());
      unsigned buffer = isTensor ? addBuffer(Place::Parameter, tensors++, bytes)
                                 : addBuffer(Place::Scalar, scalars++, bytes);
      plan.parts[argument] = {buffer, 0};
    }
  }

  LogicalResult numberCalls() {
    for (Operation &op : program.getBody().front().without_terminator()) {
      switch (getRole(&op)) {
      case OpRole::Call:
        callNumber[&op] = calls.size();
        calls.push_back(&op);
        break;
      case OpRole::Constant:
        addConstant(&op);
        break;
      case OpRole::View:
        break;
      default:
        return op.emitOpError(
            "is left in the program at the kernels stage, where only calls, "
            "reshapes and constants may be");
      }
    }
    return success();
  }

  void addConstant(Operation *op) {
    DenseElementsAttr elements;
    matchPattern(op, m_Constant(&elements));
    unsigned index = plan.constants.size();
    plan.constants.push_back(elements);
    plan.parts[op->getResult(0)] = {
        addBuffer(Place::Constant, index, getTensorBytes(elements.getType())),
        0};
  }

  /// Lets parts of joins be written where the join wants them: results of
  /// calls that are a part of one join only and not an output by themselves.
  void placeParts() {
    DenseSet<Value> returned;
    for (Value value : terminator()->getOperands())
      returned.insert(rootOf(value).first);
    for (Operation *call : calls) {
      auto join = dyn_cast<ltc::JoinOp>(call);
      if (!join)
        continue;
      firstWrite[join] = callNumber[join];
      int64_t offset = 0;
      for (Value part : join.getParts()) {
        auto [root, before] = rootOf(part);
        Operation *writer = root.getDefiningOp();
        int64_t bytes = getTensorBytes(part.getType());
        if (writer && callNumber.contains(writer) &&
            !isa<ltc::JoinOp>(writer) && !returned.contains(root) &&
            before == 0 && getTensorBytes(root.getType()) == bytes &&
            partOfJoin.try_emplace(root, join.getWhole(), offset).second)
          firstWrite[join] = std::min(firstWrite[join], callNumber[writer]);
        offset += bytes;
      }
    }
  }

  /// The value whose memory `value` lies in, and the bytes before it.
  std::pair<Value, int64_t> rootOf(Value value) {
    int64_t offset = 0;
    while (Operation *def = value.getDefiningOp()) {
      if (auto part = partOfJoin.find(value); part != partOfJoin.end()) {
        value = part->second.first;
        offset += part->second.second;
        continue;
      }
      if (getRole(def) != OpRole::View && !isa<ltc::CheckBoundsOp>(def))
        break;
      if (auto slice = dyn_cast<tensor::ExtractSliceOp>(def)) {
        int64_t width =
            getTensorBytes(slice.getResultType()) /
            std::max<int64_t>(1, slice.getResultType().getNumElements());
        offset += getSliceOffset(slice) * width;
      }
      value = def->getOperand(0);
    }
    return {value, offset};
  }

  void findLastReads() {
    for (Operation *call : calls)
      for (Value operand : call->getOperands())
        lastRead[rootOf(operand).first] = callNumber[call];
    for (Value returned : terminator()->getOperands())
      lastRead[rootOf(returned).first] = INT_MAX;
  }

  Operation *terminator() { return program.getBody().front().getTerminator(); }

  //===--------------------------------------------------------------------===//
  // Outputs
  //===--------------------------------------------------------------------===//

  /// Updates of a parameter get its memory before any other output may: that
  /// keeps a weight's memory with the weight.
  void placeOutputs() {
    plan.outputs.resize(terminator()->getNumOperands());
    auto values = llvm::enumerate(terminator()->getOperands());
    for (auto [index, value] : values) {
      plan.outputs[index].bytes = getTensorBytes(value.getType());
      auto updated =
          program.getResultAttrOfType<IntegerAttr>(index, kUpdatesAttr);
      if (updated)
        plan.outputs[index].updatedParameter =
            plan.buffers[plan.parts[program.getArgument(updated.getInt())]
                             .buffer]
                .index;
      Value root = isWholeResult(value) ? rootOf(value).first : Value();
      if (!updated || !root || plan.parts.contains(root))
        continue;
      BlockArgument argument = program.getArgument(updated.getInt());
      if (Death death = deathOf(argument, root); death != Death::Later)
        donate(argument, root, plan.outputs[index], death);
    }
    for (auto [index, value] : values) {
      PlannedOutput &output = plan.outputs[index];
      if (output.donatedParameter)
        continue;
      Value root = rootOf(value).first;
      auto argument = dyn_cast<BlockArgument>(root);
      // A parameter seen through a view is copied: the caller takes a forwarded
      // output for the parameter itself, shape and dtype included.
      if (argument && argument.getType() == value.getType() &&
          isUnsigned(argument) == isUnsigned(index))
        output.forwardedParameter =
            plan.buffers[plan.parts[argument].buffer].index;
      else if (isWholeResult(value) && !plan.parts.contains(root))
        placeResultInOutput(root, index, output);
      else
        copiedOutputs.push_back(index);
    }
  }

  bool isUnsigned(BlockArgument argument) {
    return bool(
        program.getArgAttr(argument.getArgNumber(), ltc::kUnsignedAttr));
  }
  bool isUnsigned(unsigned result) {
    return bool(program.getResultAttr(result, ltc::kUnsignedAttr));
  }

  /// Whether `value` is all of a call's result, maybe with another shape.
  bool isWholeResult(Value value) {
    auto [root, offset] = rootOf(value);
    return root.getDefiningOp() && callNumber.contains(root.getDefiningOp()) &&
           offset == 0 &&
           getTensorBytes(root.getType()) == getTensorBytes(value.getType());
  }

  void placeResultInOutput(Value root, unsigned index, PlannedOutput &output) {
    // A parameter that the writer itself reads is better than one that is only
    // dead by then: the memory is in the cache.
    for (Death wanted : {Death::AtWriter, Death::Before})
      for (BlockArgument argument : program.getArguments())
        if (deathOf(argument, root) == wanted)
          return donate(argument, root, output, wanted);
    plan.parts[root] = {addBuffer(Place::Output, index, output.bytes), 0};
    output.part = plan.parts[root];
  }

  /// When a parameter is last read, seen from the call that writes a result.
  enum class Death { Before, AtWriter, Later };

  /// `Later` also if the result can't lie in the parameter's memory.
  Death deathOf(BlockArgument argument, Value result) {
    // The parts of a join are written before it.
    if (result.getDefiningOp<ltc::JoinOp>() ||
        !program.getArgAttr(argument.getArgNumber(), kDonatableAttr) ||
        donated.contains(argument) ||
        getTensorBytes(argument.getType()) != getTensorBytes(result.getType()))
      return Death::Later;
    int writer = callNumber[result.getDefiningOp()];
    auto read = lastRead.find(argument);
    int last = read == lastRead.end() ? -1 : read->second;
    if (last < writer && argument.getType() == result.getType())
      return Death::Before;
    return last == writer && canReuse(result, argument) ? Death::AtWriter
                                                        : Death::Later;
  }

  void donate(BlockArgument argument, Value result, PlannedOutput &output,
              Death death) {
    donated.insert(argument);
    if (death == Death::AtWriter)
      recordAlias(cast<OpResult>(result), argument);
    BufferPart part = plan.parts[argument];
    output.donatedParameter = plan.buffers[part.buffer].index;
    output.part = plan.parts[result] = part;
  }

  /// Whether the call that defines `result` may write it over `operandRoot`.
  bool canReuse(Value result, Value operandRoot) {
    auto call = result.getDefiningOp<ltc::KernelCallOp>();
    if (!call)
      return false;
    std::optional<unsigned> number = soleOperandIn(call, operandRoot);
    if (!number)
      return false;
    // Another result may already lie there.
    if (auto it = plan.aliases.find(call); it != plan.aliases.end())
      if (llvm::is_contained(it->second, int64_t(*number)))
        return false;
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    return writeOver.canWriteOver(kernel, *number,
                                  cast<OpResult>(result).getResultNumber());
  }

  /// The operand that is all of `root`, if no other operand lies in it.
  std::optional<unsigned> soleOperandIn(ltc::KernelCallOp call, Value root) {
    std::optional<unsigned> number;
    for (auto [index, operand] : llvm::enumerate(call.getArguments())) {
      auto [operandRoot, offset] = rootOf(operand);
      if (operandRoot != root)
        continue;
      if (number || offset != 0 ||
          getTensorBytes(operand.getType()) != getTensorBytes(root.getType()))
        return std::nullopt;
      number = index;
    }
    return number;
  }

  void recordAlias(OpResult result, Value operandRoot) {
    auto call = cast<ltc::KernelCallOp>(result.getOwner());
    SmallVector<int64_t> &aliases =
        plan.aliases
            .try_emplace(call, SmallVector<int64_t>(call.getNumResults(), -1))
            .first->second;
    aliases[result.getResultNumber()] = *soleOperandIn(call, operandRoot);
  }

  /// Outputs that are parts of other values, constants, or repeated.
  void finishOutputs() {
    for (unsigned index : copiedOutputs) {
      Value value = terminator()->getOperand(index);
      PlannedOutput &output = plan.outputs[index];
      output.copyFrom = partOf(value);
      output.part = {addBuffer(Place::Output, index, output.bytes), 0};
    }
    for (Operation *call : calls)
      for (Value value : llvm::concat<Value>(
               llvm::to_vector(call->getOperands()),
               llvm::map_to_vector(call->getResults(),
                                   [](OpResult r) { return Value(r); })))
        plan.parts[value] = partOf(value);
  }

  BufferPart partOf(Value value) {
    auto [root, offset] = rootOf(value);
    BufferPart part = plan.parts.at(root);
    return {part.buffer, part.offset + offset};
  }

  //===--------------------------------------------------------------------===//
  // Arena
  //===--------------------------------------------------------------------===//

  void placeTemporaries() {
    DenseMap<Value, unsigned> rangeOf;
    for (auto [number, call] : llvm::enumerate(calls)) {
      for (OpResult result : call->getResults()) {
        if (plan.parts.contains(result) || partOfJoin.contains(result) ||
            isa<ltc::CheckBoundsOp>(call))
          continue;
        auto read = lastRead.find(result);
        int end = read == lastRead.end() ? int(number) : read->second;
        if (reuseOperand(result, number, end, rangeOf))
          continue;
        int64_t bytes = getTensorBytes(result.getType());
        auto first = firstWrite.find(call);
        int begin = first == firstWrite.end() ? int(number) : first->second;
        rangeOf[result] = ranges.size();
        ranges.push_back(
            {addBuffer(Place::Arena, 0, bytes), bytes, begin, end});
        plan.parts[result] = {ranges.back().buffer, 0};
      }
    }
  }

  /// Lets `result` take over the range of an operand that dies at its call.
  bool reuseOperand(OpResult result, int number, int end,
                    DenseMap<Value, unsigned> &rangeOf) {
    for (Value operand : result.getOwner()->getOperands()) {
      Value root = rootOf(operand).first;
      auto range = rangeOf.find(root);
      if (range == rangeOf.end() || lastRead.lookup(root) != number ||
          getTensorBytes(root.getType()) != getTensorBytes(result.getType()) ||
          !canReuse(result, root))
        continue;
      recordAlias(result, root);
      // Copied before the insertions, which may move the maps' entries.
      unsigned reused = range->second;
      BufferPart part = plan.parts.at(root);
      ranges[reused].end = end;
      plan.parts[result] = part;
      rangeOf[result] = reused;
      return true;
    }
    return false;
  }

  void assignOffsets() {
    SmallVector<LiveRange *> bySize;
    for (LiveRange &range : ranges)
      bySize.push_back(&range);
    llvm::stable_sort(
        bySize, [](LiveRange *a, LiveRange *b) { return a->bytes > b->bytes; });
    SmallVector<LiveRange *> placed; // by offset
    for (LiveRange *range : bySize) {
      range->offset = bestGap(*range, placed);
      placed.insert(llvm::upper_bound(placed, range,
                                      [](LiveRange *a, LiveRange *b) {
                                        return a->offset < b->offset;
                                      }),
                    range);
      plan.buffers[range->buffer].arenaOffset = range->offset;
      plan.arenaBytes = std::max(
          plan.arenaBytes, int64_t(llvm::alignTo(range->offset + range->bytes,
                                                 kBufferAlignment)));
    }
  }

  static int64_t bestGap(const LiveRange &range, ArrayRef<LiveRange *> placed) {
    int64_t best = -1, bestSize = INT64_MAX, end = 0;
    for (const LiveRange *other : placed) {
      if (other->end < range.begin || range.end < other->begin)
        continue;
      int64_t gap = other->offset - end;
      if (gap >= range.bytes && gap < bestSize) {
        best = end;
        bestSize = gap;
      }
      end = std::max(end, int64_t(llvm::alignTo(other->offset + other->bytes,
                                                kBufferAlignment)));
    }
    return best >= 0 ? best : end;
  }

  func::FuncOp program;
  SymbolTable symbols;
  WriteOverAnalysis writeOver;
  BufferPlan plan;
  SmallVector<Operation *> calls;
  DenseMap<Operation *, int> callNumber;
  DenseMap<Value, int> lastRead;
  /// Results that are written into a join's result, and the bytes before them.
  DenseMap<Value, std::pair<Value, int64_t>> partOfJoin;
  DenseMap<Operation *, int> firstWrite; ///< of joins
  DenseSet<Value> donated;
  SmallVector<unsigned> copiedOutputs;
  SmallVector<LiveRange> ranges;
};

} // namespace

FailureOr<BufferPlan> BufferPlan::compute(func::FuncOp program) {
  return Planner(program).run();
}
