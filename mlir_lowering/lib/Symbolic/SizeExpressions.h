//===- SizeExpressions.h - Numbers computed from sizes ----------*- C++ -*-===//

#ifndef TORCH_LTC_LIB_SYMBOLIC_SIZEEXPRESSIONS_H
#define TORCH_LTC_LIB_SYMBOLIC_SIZEEXPRESSIONS_H

#include "torch_ltc/Codegen/NumberFitter.h"

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"

namespace mlir::torch_ltc {

/// Converts the code of an integer to an affine expression of the symbols.
AffineExpr sizeExpression(const NumberCode &code, MLIRContext *context);

/// Writes the code of a number as ops of the torch dialect.
class TorchNumberBuilder {
public:
  TorchNumberBuilder(OpBuilder builder, Location location)
      : builder(builder), location(location) {}

  Value constant(int64_t value);
  /// Returns the number as a value of type `!torch.int`, or `!torch.float` for
  /// the code of a float64. `symbols` contains the value of each symbol.
  Value build(const NumberCode &code, ArrayRef<Value> symbols);
  /// Computes a symbol from size `dim` of the tensor, which equals `factor` *
  /// symbol + `offset`.
  Value solveSize(Value tensor, int64_t dim, int64_t factor, int64_t offset);

private:
  template <typename OpTy> Value apply(Type type, ValueRange operands) {
    OperationState state(location, OpTy::getOperationName(), operands, type);
    return builder.create(state)->getResult(0);
  }
  Value floatConstant(double value);

  OpBuilder builder;
  Location location;
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_SYMBOLIC_SIZEEXPRESSIONS_H
