//===- TorchDialect.h - PyTorch's ATen ops --------------------*- C++ -*-===//

#ifndef TORCH_LTC_DIALECT_TORCH_TORCHDIALECT_H
#define TORCH_LTC_DIALECT_TORCH_TORCHDIALECT_H

#include "mlir/IR/Dialect.h"
#include "llvm/ADT/StringMap.h"

#include "torch_ltc/Dialect/Torch/TorchDialect.h.inc"

#endif // TORCH_LTC_DIALECT_TORCH_TORCHDIALECT_H
