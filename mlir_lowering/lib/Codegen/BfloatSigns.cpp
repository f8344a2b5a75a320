//===- BfloatSigns.cpp - Sign bits of bfloat numbers ----------------------===//

#include "BfloatSigns.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

/// Whether a user of the number's 16 bits may read only the highest bit. Most
/// users extend the bits to those of a float.
static bool mayReadSign(const User *user) {
  using namespace PatternMatch;
  return !match(user, m_ZExt(m_Value()));
}

static bool isSuspect(const Instruction &instruction) {
  auto *cast = dyn_cast<BitCastInst>(&instruction);
  return cast && cast->getSrcTy()->isBFloatTy() &&
         cast->getDestTy()->isIntegerTy() && any_of(cast->users(), mayReadSign);
}

void mlir::torch_ltc::readBfloatBitsAsFloat(Module &module) {
  SmallVector<Instruction *> suspects;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (isSuspect(instruction))
        suspects.push_back(&instruction);
  for (Instruction *cast : suspects) {
    IRBuilder<> builder(cast);
    llvm::Value *wide =
        builder.CreateFPExt(cast->getOperand(0), builder.getFloatTy());
    llvm::Value *bits = builder.CreateBitCast(wide, builder.getInt32Ty());
    llvm::Value *high =
        builder.CreateTrunc(builder.CreateLShr(bits, 16), builder.getInt16Ty());
    cast->replaceAllUsesWith(high);
    cast->eraseFromParent();
  }
}
