//===- ir_builder.h - Nodes for torch::lazy's own code ----------*- C++ -*-===//

#ifndef TORCH_LTC_DEVICE_IR_BUILDER_H
#define TORCH_LTC_DEVICE_IR_BUILDER_H

#include <torch/csrc/lazy/core/ir_builder.h>

namespace torch_ltc {

const torch::lazy::IrBuilder &irBuilder();

} // namespace torch_ltc

#endif // TORCH_LTC_DEVICE_IR_BUILDER_H
