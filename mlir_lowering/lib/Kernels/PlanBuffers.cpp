//===- PlanBuffers.cpp - Location of each value of the program ------------===//
//
// Assigns a place to every result of a command: the memory of an output or a
// parameter, or a range of the arena. The plan contains
//
// * forwarding: an output that is an unchanged parameter isn't written at all;
// * donation: an output may be written into the memory of a parameter marked
//   `torch_ltc.donatable` if every other reader of that parameter runs before
//   the writer, the writer reads the parameter only at the element that it
//   writes, and no bounds check follows: a run that fails must leave the
//   parameters as they were, so that eager's kernels can report the error;
// * reuse of an operand's arena range by a result, under the same condition;
// * arena offsets: the largest buffers are placed first, each in the smallest
//   gap that holds it between the buffers that live at the same time.
//
//===----------------------------------------------------------------------===//

#include "WriteOver.h"

#include "torch_ltc/Dialect/Ltc/Collectives.h"
#include "torch_ltc/Kernels/BufferPlan.h"
#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"

#include <climits>

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_PLANBUFFERS
#include "torch_ltc/Kernels/Passes.h.inc"
} // namespace mlir::torch_ltc

using namespace mlir;
using namespace mlir::torch_ltc;

namespace {

/// A range of the arena; `assignOffsets` sets the offset.
struct LiveRange {
  int64_t bytes;
  int begin, end; ///< first and last command
  int64_t offset = -1;
};

/// A whole buffer.
struct Storage {
  enum Kind { Parameter, Constant, Output, Arena } kind;
  /// The index of the argument, of the output or of the range; 0 for constants.
  unsigned number = 0;
};

class Planner {
public:
  explicit Planner(func::FuncOp program)
      : program(program), symbols(program->getParentOfType<ModuleOp>()) {}

  /// Writes the plan to the program's attributes.
  LogicalResult run() {
    for (BlockArgument argument : program.getArguments())
      storages[argument] = {Storage::Parameter, argument.getArgNumber()};
    if (failed(numberCalls()))
      return failure();
    placeParts();
    findLastReads();
    placeOutputs();
    placeTemporaries();
    assignOffsets();
    annotate();
    return success();
  }

private:
  LogicalResult numberCalls() {
    for (Operation &op : program.getBody().front().without_terminator()) {
      switch (getRole(&op)) {
      case OpRole::Call:
        if (isa<ltc::CheckBoundsOp>(op))
          lastCheck = int(calls.size());
        callNumber[&op] = calls.size();
        calls.push_back(&op);
        break;
      case OpRole::Constant:
        storages[op.getResult(0)] = {Storage::Constant};
        break;
      case OpRole::View:
        break;
      default:
        return op.emitOpError(
            "remains in the program at the kernels stage, which only allows "
            "calls, reshapes and constants");
      }
    }
    return success();
  }

  /// Places a call's result in the memory of a join, so that the call writes it
  /// there, if the result is a part of only that join and isn't an output
  /// itself. Also places the values that collectives exchange.
  void placeParts() {
    for (Value value : terminator()->getOperands())
      returned.insert(rootOf(value).first);
    for (Operation *call : calls) {
      if (ltc::HostCallOp begin = getBeginOf(call))
        placeExchanged(begin, call);
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
            partOf.try_emplace(root, join.getWhole(), offset).second)
          firstWrite[join] = std::min(firstWrite[join], firstWriteOf(writer));
        offset += bytes;
      }
    }
  }

  /// Places the value that a collective exchanges in the memory of the result
  /// of `finish`, from `begin` on. The input of `begin` is placed there, too,
  /// if nothing reads it later.
  void placeExchanged(ltc::HostCallOp begin, Operation *finish) {
    Value result = finish->getResult(0);
    partOf[begin.getOutputs().back()] = {result, 0};
    firstWrite[finish] = callNumber[begin];
    auto [root, before] = rootOf(begin.getInputs().back());
    Operation *writer = root.getDefiningOp();
    if (!updatesInput(getCollectiveKind(begin)) || !writer ||
        !callNumber.contains(writer) || isa<ltc::CheckBoundsOp>(writer) ||
        before != 0 || returned.contains(root) ||
        getTensorBytes(root.getType()) != getTensorBytes(result.getType()) ||
        isReadAfter(root, begin))
      return;
    partOf[root] = {result, 0};
    firstWrite[finish] = firstWriteOf(writer);
  }

  bool isReadAfter(Value root, Operation *reader) {
    for (Operation *call : llvm::drop_begin(calls, callNumber[reader] + 1))
      for (Value operand : call->getOperands())
        if (rootOf(operand).first == root)
          return true;
    return false;
  }

  /// Returns the number of the first call that writes to the memory of `call`'s
  /// result.
  int firstWriteOf(Operation *call) {
    auto first = firstWrite.find(call);
    return first == firstWrite.end() ? callNumber[call] : first->second;
  }

  /// The value whose memory holds `value`, and its byte offset there.
  std::pair<Value, int64_t> rootOf(Value value) {
    auto [root, offset] = lookThroughViews(value);
    auto part = partOf.find(root);
    if (part == partOf.end())
      return {root, offset};
    auto [whole, before] = rootOf(part->second.first);
    return {whole, offset + part->second.second + before};
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

  /// Places updates of parameters in the parameters' memory before any other
  /// output can get this memory, so that a weight stays where it is.
  void placeOutputs() {
    outputs.resize(terminator()->getNumOperands());
    auto values = llvm::enumerate(terminator()->getOperands());
    for (auto [index, value] : values) {
      auto updated =
          program.getResultAttrOfType<IntegerAttr>(index, kUpdatesAttr);
      Value root = isWholeResult(value) ? rootOf(value).first : Value();
      if (!updated || !root || storages.contains(root))
        continue;
      BlockArgument argument = program.getArgument(updated.getInt());
      if (Death death = deathOf(argument, root); death != Death::Later)
        donate(argument, root, index, death);
    }
    for (auto [index, value] : values) {
      if (outputs[index])
        continue;
      Value root = rootOf(value).first;
      auto argument = dyn_cast<BlockArgument>(root);
      // A parameter that is returned through a view is copied to the output,
      // because the caller treats a forwarded output as the parameter itself,
      // including shape and dtype. Constants, parts of values, and the value of
      // another output are copied, too.
      outputs[index] = {Storage::Output, unsigned(index)};
      if (argument && argument.getType() == value.getType() &&
          haveSameDtype(argument, index))
        outputs[index] = storages[argument];
      else if (isWholeResult(value) && !storages.contains(root))
        placeResult(root, index);
    }
  }

  /// Whether a parameter and a result whose types are equal also have equal
  /// dtypes in torch: si8 and ui8 are both i8 here.
  bool haveSameDtype(BlockArgument argument, unsigned result) {
    return llvm::all_of(
        ArrayRef{kUnsignedAttr, kComplexAttr}, [&](StringRef name) {
          return program.getArgAttr(argument.getArgNumber(), name) ==
                 program.getResultAttr(result, name);
        });
  }

  /// Whether `value` is all of a call's result, possibly reshaped.
  bool isWholeResult(Value value) {
    auto [root, offset] = rootOf(value);
    return root.getDefiningOp() && callNumber.contains(root.getDefiningOp()) &&
           offset == 0 &&
           getTensorBytes(root.getType()) == getTensorBytes(value.getType());
  }

  void placeResult(Value root, unsigned output) {
    // Prefer a parameter that the writing call itself reads, whose memory is
    // still in the processor's cache, to one that only earlier calls read.
    for (Death wanted : {Death::AtWriter, Death::Before})
      for (BlockArgument argument : program.getArguments())
        if (deathOf(argument, root) == wanted)
          return donate(argument, root, output, wanted);
    storages[root] = *outputs[output];
  }

  /// When a parameter is last read, relative to the call that writes a result.
  enum class Death { Before, AtWriter, Later };

  /// Returns when `argument` is last read, or `Later` if `result` can't use its
  /// memory.
  Death deathOf(BlockArgument argument, Value result) {
    if (!program.getArgAttr(argument.getArgNumber(), kDonatableAttr) ||
        donated.contains(argument) ||
        getTensorBytes(argument.getType()) != getTensorBytes(result.getType()))
      return Death::Later;
    int writer = firstWriteOf(result.getDefiningOp());
    if (writer <= lastCheck)
      return Death::Later;
    auto read = lastRead.find(argument);
    int last = read == lastRead.end() ? -1 : read->second;
    if (last < writer && argument.getType() == result.getType())
      return Death::Before;
    return last == writer && canReuse(result, argument) ? Death::AtWriter
                                                        : Death::Later;
  }

  void donate(BlockArgument argument, Value result, unsigned output,
              Death death) {
    donated.insert(argument);
    if (death == Death::AtWriter)
      recordAlias(cast<OpResult>(result), argument);
    Storage storage = storages[argument]; // the insertion may move the entry
    storages[result] = storage;
    outputs[output] = storage;
  }

  /// Whether the call that defines `result` may write it over `operandRoot`.
  bool canReuse(Value result, Value operandRoot) {
    if (ltc::HostCallOp begin = getBeginOf(result.getDefiningOp()))
      return firstWriteOf(result.getDefiningOp()) == callNumber[begin] &&
             updatesInput(getCollectiveKind(begin)) &&
             isWhole(begin.getInputs().back(), operandRoot);
    auto call = result.getDefiningOp<ltc::KernelCallOp>();
    if (!call)
      return false;
    std::optional<unsigned> number = soleOperandIn(call, operandRoot);
    if (!number)
      return false;
    // Reject memory that another result of the call already uses.
    if (auto it = aliases.find(call); it != aliases.end())
      if (llvm::is_contained(it->second, int64_t(*number)))
        return false;
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    return writeOver.canWriteOver(kernel, *number,
                                  cast<OpResult>(result).getResultNumber());
  }

  bool isWhole(Value value, Value root) {
    return rootOf(value) == std::pair(root, int64_t(0)) &&
           getTensorBytes(value.getType()) == getTensorBytes(root.getType());
  }

  /// Returns the index of the operand that is all of `root`, if no other
  /// operand lies in `root`.
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
    auto call = dyn_cast<ltc::KernelCallOp>(result.getOwner());
    if (!call)
      return; // a collective, which has no aliases attribute
    auto [entry, isNew] = aliases.try_emplace(
        call, SmallVector<int64_t>(call.getNumResults(), -1));
    entry->second[result.getResultNumber()] = *soleOperandIn(call, operandRoot);
  }

  //===--------------------------------------------------------------------===//
  // Arena
  //===--------------------------------------------------------------------===//

  void placeTemporaries() {
    for (auto [number, call] : llvm::enumerate(calls)) {
      for (OpResult result : call->getResults()) {
        if (storages.contains(result) || partOf.contains(result) ||
            isa<ltc::CheckBoundsOp>(call))
          continue;
        auto read = lastRead.find(result);
        int end = read == lastRead.end() ? int(number) : read->second;
        if (reuseOperand(result, number, end))
          continue;
        storages[result] = {Storage::Arena, unsigned(ranges.size())};
        ranges.push_back(
            {getTensorBytes(result.getType()), firstWriteOf(call), end});
      }
    }
  }

  /// Lets `result` reuse the arena range of an operand that no later call
  /// reads. Returns whether there is such an operand.
  bool reuseOperand(OpResult result, int number, int end) {
    for (Value operand : result.getOwner()->getOperands()) {
      Value root = rootOf(operand).first;
      auto it = storages.find(root);
      if (it == storages.end() || it->second.kind != Storage::Arena ||
          lastRead.lookup(root) != number ||
          getTensorBytes(root.getType()) != getTensorBytes(result.getType()) ||
          !canReuse(result, root))
        continue;
      recordAlias(result, root);
      Storage storage = it->second; // the insertion may move the entry
      storages[result] = storage;
      ranges[storage.number].end = end;
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
      arenaBytes = std::max(arenaBytes, endOf(*range));
    }
  }

  static int64_t endOf(const LiveRange &range) {
    return llvm::alignTo(range.offset + range.bytes, kBufferAlignment);
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
      end = std::max(end, endOf(*other));
    }
    return best >= 0 ? best : end;
  }

  //===--------------------------------------------------------------------===//
  // Attributes
  //===--------------------------------------------------------------------===//

  ltc::PlaceAttr placeIn(Storage storage, int64_t part) {
    MLIRContext *context = program.getContext();
    if (storage.kind == Storage::Parameter)
      return ltc::PlaceAttr::getParameter(context, storage.number, part);
    if (storage.kind == Storage::Output)
      return ltc::PlaceAttr::getOutput(context, storage.number, part);
    const LiveRange &range = ranges[storage.number];
    return ltc::PlaceAttr::getArena(context, range.offset, part, range.bytes,
                                    range.begin,
                                    std::min<int64_t>(range.end, calls.size()));
  }

  void annotate() {
    Builder builder(program.getContext());
    for (Operation *call : calls) {
      if (isa<ltc::CheckBoundsOp>(call))
        continue; // a check's result is its operand
      SmallVector<Attribute> places;
      for (Value result : call->getResults()) {
        auto [root, part] = rootOf(result);
        places.push_back(placeIn(storages.at(root), part));
      }
      call->setAttr(kPlacesAttr, builder.getArrayAttr(places));
      if (auto over = aliases.find(call); over != aliases.end())
        call->setAttr(kAliasesAttr, builder.getDenseI64ArrayAttr(over->second));
    }
    for (auto [index, storage] : llvm::enumerate(outputs))
      program.setResultAttr(index, kPlaceAttr, placeIn(*storage, 0));
    program->setAttr(kArenaBytesAttr, builder.getI64IntegerAttr(arenaBytes));
  }

  func::FuncOp program;
  SymbolTable symbols;
  WriteOverAnalysis writeOver;
  SmallVector<Operation *> calls;
  DenseMap<Operation *, int> callNumber;
  int lastCheck = -1; ///< the number of the last bounds check
  DenseMap<Value, int> lastRead;
  /// Values that are written into the result of a later call (a join, the
  /// `finish` of a collective), with their byte offsets there.
  DenseMap<Value, std::pair<Value, int64_t>> partOf;
  DenseMap<Operation *, int> firstWrite; ///< of joins and collectives
  DenseSet<Value> returned;
  DenseSet<Value> donated;
  /// The buffers of the values that are neither views nor in `partOf`.
  DenseMap<Value, Storage> storages;
  SmallVector<std::optional<Storage>> outputs;
  SmallVector<LiveRange> ranges;
  int64_t arenaBytes = 0;
  /// The kernel calls that write results over operands, with the operand's
  /// index for each result, or -1.
  DenseMap<Operation *, SmallVector<int64_t>> aliases;
};

class PlanBuffers : public torch_ltc::impl::PlanBuffersBase<PlanBuffers> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> program = findProgram(getOperation());
    if (failed(program) || failed(Planner(*program).run()))
      signalPassFailure();
  }
};

} // namespace
