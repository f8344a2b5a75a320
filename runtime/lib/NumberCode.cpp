//===- NumberCode.cpp - Numbers that depend on sizes ----------------------===//

#include "NumberCode.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace torch_ltc::runtime;

static bool isConversion(int64_t op) {
  return op == FLOAT32_BITS || op == FLOAT64_BITS;
}

bool torch_ltc::runtime::isWellFormed(const Number &number,
                                      uint32_t numSymbols) {
  int depth = 0;
  for (int i = 0; i < number.code_size(); ++i) {
    int64_t op = number.code(i);
    if (op < NumberOp_MIN || op > NumberOp_MAX)
      return false;
    if (op == CONSTANT || op == SYMBOL) {
      if (++i == number.code_size())
        return false;
      if (op == SYMBOL && uint64_t(number.code(i)) >= numSymbols)
        return false;
      ++depth;
    } else if (isConversion(op)) {
      if (depth < 1)
        return false;
    } else if (--depth < 1) {
      return false;
    }
  }
  return depth == 1;
}

static std::optional<int64_t> apply(int64_t op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
  case ADD:
    return llvm::AddOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  case MULTIPLY:
    return llvm::MulOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  case FLOOR_DIVIDE:
    return b > 0 ? std::optional(llvm::divideFloorSigned(a, b)) : std::nullopt;
  case CEIL_DIVIDE:
    return b > 0 ? std::optional(llvm::divideCeilSigned(a, b)) : std::nullopt;
  case REMAINDER:
    return b > 0 ? std::optional(llvm::mod(a, b)) : std::nullopt;
  case MINIMUM:
    return std::min(a, b);
  case MAXIMUM:
    return std::max(a, b);
  default: // the quotient of a double and an integer
    if (b == 0)
      return std::nullopt;
    double quotient = llvm::bit_cast<double>(a) / double(b);
    return op == FLOAT32_QUOTIENT_BITS
               ? int64_t(llvm::bit_cast<uint32_t>(float(quotient)))
               : llvm::bit_cast<int64_t>(quotient);
  }
}

std::optional<int64_t>
torch_ltc::runtime::evaluate(const Number &number,
                             llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<int64_t, 16> stack;
  for (int i = 0; i < number.code_size(); ++i) {
    int64_t op = number.code(i);
    if (op == CONSTANT) {
      stack.push_back(number.code(++i));
    } else if (op == SYMBOL) {
      stack.push_back(sizes[number.code(++i)]);
    } else if (op == FLOAT32_BITS) {
      stack.back() = llvm::bit_cast<uint32_t>(float(stack.back()));
    } else if (op == FLOAT64_BITS) {
      stack.back() = llvm::bit_cast<int64_t>(double(stack.back()));
    } else {
      int64_t b = stack.pop_back_val();
      std::optional<int64_t> result = apply(op, stack.back(), b);
      if (!result)
        return std::nullopt;
      stack.back() = *result;
    }
  }
  return stack.back();
}
