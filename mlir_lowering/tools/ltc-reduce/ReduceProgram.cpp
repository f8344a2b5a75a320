//===- ReduceProgram.cpp - Reduction of programs --------------------------===//
//
// MLIR's own --reduction-tree is designed for modules with many functions: it
// erases ops that other ops still use, and crashes in LLVM 22 when it clones
// them. A traced program is one function of straight-line code. This pass drops
// results of the function and replaces ops by one of their operands, an
// argument, or zeros, in chunks of decreasing size, as long as MLIR's Tester
// finds the remaining program interesting.
//
//===----------------------------------------------------------------------===//

#include "ReduceProgram.h"

#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Reducer/Tester.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace mlir::torch_ltc;

namespace {

/// The first function with a body.
func::FuncOp programOf(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isDeclaration())
      return function;
  return {};
}

bool isComputation(Operation *op) {
  return op->getNumResults() && !op->hasTrait<OpTrait::ConstantLike>() &&
         !isa<torch::PrimListConstructOp>(op);
}

Value zeros(Type type, OpBuilder &builder, Location loc) {
  auto torchType = dyn_cast<torch::ValueTensorType>(type);
  if (torchType && !torchType.isStatic())
    return {};
  auto shaped =
      torchType ? torchType.getLiteralType() : dyn_cast<RankedTensorType>(type);
  if (!shaped || !shaped.hasStaticShape() ||
      !shaped.getElementType().isIntOrFloat())
    return {};
  Type element = shaped.getElementType();
  Attribute zero = FloatAttr();
  if (isa<FloatType>(element))
    zero = FloatAttr::get(element, 0.0);
  else
    zero = IntegerAttr::get(element,
                            APInt::getZero(element.getIntOrFloatBitWidth()));
  auto value = DenseElementsAttr::get(shaped, ArrayRef<Attribute>(zero));
  if (torchType)
    return torch::ValueTensorLiteralOp::create(builder, loc, type, value);
  return arith::ConstantOp::create(builder, loc, value);
}

/// Returns an operand of `op` or an argument of the program that has the type
/// `type`; otherwise zeros, or null if the type has none.
Value standIn(Operation *op, Type type) {
  for (Value operand : op->getOperands())
    if (operand.getType() == type)
      return operand;
  for (BlockArgument argument : op->getBlock()->getArguments())
    if (argument.getType() == type)
      return argument;
  OpBuilder builder(op);
  return zeros(type, builder, op->getLoc());
}

void bypass(Operation *op) {
  SmallVector<Value> values;
  for (Type type : op->getResultTypes()) {
    Value value = standIn(op, type);
    if (!value)
      return;
    values.push_back(value);
  }
  op->replaceAllUsesWith(values);
}

/// Erases unused ops and arguments.
void clean(func::FuncOp program) {
  Block &block = program.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  llvm::BitVector unused(block.getNumArguments());
  for (BlockArgument argument : block.getArguments())
    if (argument.use_empty())
      unused.set(argument.getArgNumber());
  (void)program.eraseArguments(unused);
}

class Reduction {
public:
  Reduction(ModuleOp module, const Tester &tester)
      : best(module.clone()), tester(tester) {}

  bool isInteresting(ModuleOp module) {
    return succeeded(mlir::verify(module)) &&
           tester.isInteresting(module).first == Tester::Interestingness::True;
  }

  void run() {
    while (dropResults() | dropOps())
      ;
  }

  ModuleOp get() { return *best; }

private:
  /// Tries `change` on a copy, and keeps the copy if it is smaller and
  /// interesting. Returns whether the copy was kept.
  bool attempt(function_ref<void(func::FuncOp)> change) {
    OwningOpRef<ModuleOp> copy = best->clone();
    func::FuncOp program = programOf(*copy);
    change(program);
    clean(program);
    if (sizeOf(program) >= sizeOf(programOf(*best)) || !isInteresting(*copy))
      return false;
    best = std::move(copy);
    return true;
  }

  static size_t sizeOf(func::FuncOp program) {
    Block &block = program.getBody().front();
    size_t size = program.getNumResults();
    for (Operation &op : block.without_terminator())
      size += isComputation(&op) ? 2 : 0;
    return size;
  }

  bool dropResults() {
    bool changed = false;
    for (unsigned i = programOf(*best).getNumResults(); i-- > 0;)
      changed |= attempt([i](func::FuncOp program) {
        if (program.getNumResults() == 1)
          return;
        program.getBody().front().getTerminator()->eraseOperand(i);
        llvm::BitVector dropped(program.getNumResults());
        dropped.set(i);
        (void)program.eraseResults(dropped);
      });
    return changed;
  }

  /// Removes ops from the end, so that ops that become dead are removed with
  /// their users.
  bool dropOps() {
    bool changed = false;
    size_t count = numComputations();
    for (size_t chunk = std::max<size_t>(count / 2, 1);; chunk /= 2) {
      for (size_t end = numComputations(); end > 0;) {
        size_t begin = end > chunk ? end - chunk : 0;
        changed |= attempt([&](func::FuncOp program) {
          size_t number = 0;
          for (Operation &op : llvm::make_early_inc_range(
                   program.getBody().front().without_terminator()))
            if (isComputation(&op) && number++ >= begin && number <= end)
              bypass(&op);
        });
        end = std::min(begin, numComputations());
      }
      if (chunk <= 1)
        return changed;
    }
  }

  size_t numComputations() {
    return llvm::count_if(programOf(*best).getBody().front(),
                          [](Operation &op) { return isComputation(&op); });
  }

  OwningOpRef<ModuleOp> best;
  const Tester &tester;
};

class ReduceProgramPass
    : public PassWrapper<ReduceProgramPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReduceProgramPass)
  ReduceProgramPass() = default;
  ReduceProgramPass(const ReduceProgramPass &other)
      : PassWrapper<ReduceProgramPass, OperationPass<ModuleOp>>(other) {}

  StringRef getArgument() const override { return "ltc-reduce-program"; }
  StringRef getDescription() const override {
    return "Reduce a program while a script finds it interesting";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, torch::TorchDialect>();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // If the script can't be run, the Tester exits the process without naming
    // the script (LLVM 22).
    if (!llvm::sys::fs::can_execute(script)) {
      module.emitError() << "'" << script
                         << "' can't be run: give an executable file as "
                            "--ltc-reduce-program=test=FILE";
      return signalPassFailure();
    }
    Tester tester(script, {});
    Reduction reduction(module, tester);
    if (!programOf(module) || !reduction.isInteresting(module)) {
      module.emitError() << "'" << script
                         << "' doesn't exit with 1 for the unchanged module";
      return signalPassFailure();
    }
    reduction.run();
    module.getBodyRegion().takeBody(reduction.get().getBodyRegion());
  }

private:
  Option<std::string> script{
      *this, "test",
      llvm::cl::desc("script that gets a file and exits with 1 if it is still "
                     "interesting")};
};

} // namespace

void torch_ltc::registerReduceProgramPass() {
  PassRegistration<ReduceProgramPass>();
}
