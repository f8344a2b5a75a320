//===- SizeExpressions.cpp - Numbers computed from sizes ------------------===//

#include "SizeExpressions.h"

#include "executable.pb.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mlir::torch_ltc;
namespace runtime = ::torch_ltc::runtime;

AffineExpr mlir::torch_ltc::sizeExpression(const NumberCode &code,
                                           MLIRContext *context) {
  SmallVector<AffineExpr> stack;
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i] == runtime::CONSTANT) {
      stack.push_back(getAffineConstantExpr(code[++i], context));
      continue;
    }
    if (code[i] == runtime::SYMBOL) {
      stack.push_back(getAffineSymbolExpr(code[++i], context));
      continue;
    }
    AffineExpr right = stack.pop_back_val();
    AffineExpr left = stack.pop_back_val();
    switch (code[i]) {
    case runtime::ADD:
      stack.push_back(left + right);
      break;
    case runtime::MULTIPLY:
      stack.push_back(left * right);
      break;
    case runtime::FLOOR_DIVIDE:
      stack.push_back(left.floorDiv(right));
      break;
    default:
      llvm_unreachable("the instruction isn't part of the code of a size");
    }
  }
  return stack.front();
}

Value TorchNumberBuilder::constant(int64_t value) {
  return torch::ConstantIntOp::create(builder, location,
                                      torch::IntType::get(builder.getContext()),
                                      builder.getI64IntegerAttr(value));
}

Value TorchNumberBuilder::floatConstant(double value) {
  return torch::ConstantFloatOp::create(
      builder, location, torch::FloatType::get(builder.getContext()),
      builder.getF64FloatAttr(value));
}

Value TorchNumberBuilder::solveSize(Value tensor, int64_t dim, int64_t factor,
                                    int64_t offset) {
  Type type = torch::IntType::get(builder.getContext());
  Value size =
      apply<torch::AtenSizeIntOp>(type, ValueRange{tensor, constant(dim)});
  if (offset != 0)
    size =
        apply<torch::AtenAddIntOp>(type, ValueRange{size, constant(-offset)});
  if (factor != 1)
    size = apply<torch::AtenFloordivIntOp>(type,
                                           ValueRange{size, constant(factor)});
  return size;
}

Value TorchNumberBuilder::build(const NumberCode &code,
                                ArrayRef<Value> symbols) {
  Type intType = torch::IntType::get(builder.getContext());
  Type floatType = torch::FloatType::get(builder.getContext());
  // A constant may be an integer or the bits of a float; only its use shows
  // which.
  struct Entry {
    Value value;
    std::optional<int64_t> constant;
  };
  SmallVector<Entry> stack;
  auto valueOf = [&](const Entry &entry) {
    return entry.value ? entry.value : constant(*entry.constant);
  };
  auto push = [&](Value value) { stack.push_back({value, std::nullopt}); };
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i] == runtime::CONSTANT) {
      stack.push_back({Value(), code[++i]});
      continue;
    }
    if (code[i] == runtime::SYMBOL) {
      push(symbols[code[++i]]);
      continue;
    }
    Entry right = stack.pop_back_val();
    if (code[i] == runtime::FLOAT64_BITS) {
      push(apply<torch::AtenFloatScalarOp>(floatType, valueOf(right)));
      continue;
    }
    Entry left = stack.pop_back_val();
    switch (code[i]) {
    case runtime::ADD:
      push(apply<torch::AtenAddIntOp>(
          intType, ValueRange{valueOf(left), valueOf(right)}));
      break;
    case runtime::MULTIPLY:
      push(apply<torch::AtenMulIntOp>(
          intType, ValueRange{valueOf(left), valueOf(right)}));
      break;
    case runtime::FLOOR_DIVIDE:
      push(apply<torch::AtenFloordivIntOp>(
          intType, ValueRange{valueOf(left), valueOf(right)}));
      break;
    case runtime::FLOAT64_QUOTIENT_BITS: {
      Value divisor =
          apply<torch::AtenFloatScalarOp>(floatType, valueOf(right));
      Value dividend =
          left.value ? left.value
                     : floatConstant(llvm::bit_cast<double>(*left.constant));
      push(apply<torch::AtenDivFloatOp>(floatType,
                                        ValueRange{dividend, divisor}));
      break;
    }
    default:
      llvm_unreachable("the instruction isn't part of the code of a size");
    }
  }
  return valueOf(stack.front());
}
