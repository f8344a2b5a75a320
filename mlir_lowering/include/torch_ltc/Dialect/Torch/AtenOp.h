//===- AtenOp.h - What the ops of the op table share -----------*- C++ -*-===//
//
// All ops of the table are pure, have one operand for each argument of the
// schema, and have no attributes or regions. Their classes, generated into
// TorchOps_<family>.h, therefore only name the operands and results, and one
// model implements all of them in MLIR's registry. ODS would generate a copy of
// all functions for each of the 400 ops; compiling the copies took a seventh of
// the project's build time.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DIALECT_TORCH_ATENOP_H
#define TORCH_LTC_DIALECT_TORCH_ATENOP_H

#include "torch_ltc/Dialect/Torch/TorchTypes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::torch_ltc::torch {

class TorchDialect;

/// The base of the ops' classes.
template <typename ConcreteOp> class AtenOp : public OpState {
public:
  explicit AtenOp(Operation *op = nullptr) : OpState(op) {}
  AtenOp(std::nullptr_t) : OpState(nullptr) {}

  static bool classof(Operation *op) {
    return op->getName().getTypeID() == TypeID::get<ConcreteOp>();
  }
  static ConcreteOp create(OpBuilder &builder, Location location,
                           TypeRange results, ValueRange operands) {
    OperationState state(location, ConcreteOp::getOperationName(), operands,
                         results);
    return ConcreteOp(builder.create(state));
  }
  /// Positions of the arguments that may be dynamic scalars or lists of them
  /// (columns `varies` and `parameters` of the op table).
  static ArrayRef<unsigned> getDynamicScalars() { return {}; }
};

/// The arguments that may be dynamic scalars in a lowering or a decomposition:
/// those that the op table allows, or none.
enum class DynamicScalars { AsInOpTable, None };

template <typename OpTy>
ArrayRef<unsigned> dynamicScalarsOf(DynamicScalars scalars) {
  return scalars == DynamicScalars::None ? ArrayRef<unsigned>()
                                         : OpTy::getDynamicScalars();
}

/// A type constraint on an operand or result. Errors contain `summary`.
struct AtenValueKind {
  bool (*accepts)(Type);
  StringLiteral summary;
  bool isOptional = false;
};

/// Functions that an op may define (column `hooks` of the op table); null for
/// those that it doesn't define.
struct AtenOpHooks {
  OpFoldResult (*fold)(Operation *) = nullptr;
  void (*canonicalize)(RewritePatternSet &, MLIRContext *) = nullptr;
  LogicalResult (*verify)(Operation *) = nullptr;
};

template <typename ConcreteOp> AtenOpHooks hooksOf() {
  AtenOpHooks hooks;
  if constexpr (requires(ConcreteOp op) { op.fold(); })
    hooks.fold = [](Operation *op) { return ConcreteOp(op).fold(); };
  if constexpr (requires(ConcreteOp op) { op.verify(); })
    hooks.verify = [](Operation *op) { return ConcreteOp(op).verify(); };
  // OpState has a default that adds no patterns.
  hooks.canonicalize = ConcreteOp::getCanonicalizationPatterns;
  return hooks;
}

/// Folds an op that keeps all elements in order: returns its operand if operand
/// and result have the same static type, otherwise null.
OpFoldResult foldSameType(Value self, Value result);

using AtenValueKinds = std::initializer_list<const AtenValueKind *>;

/// Registers an op of the table. `arguments` are the names of its arguments in
/// the schema, separated by spaces.
void registerAtenOp(TorchDialect &dialect, StringRef name, TypeID id,
                    StringRef arguments, AtenValueKinds operands,
                    AtenValueKinds results, AtenOpHooks hooks = {});

/// Returns "argument 'dim'", with the name in the op's schema. For an op that
/// isn't in the table, returns "argument 1", with the position.
std::string describeArgument(OpOperand &operand);

} // namespace mlir::torch_ltc::torch

#endif // TORCH_LTC_DIALECT_TORCH_ATENOP_H
