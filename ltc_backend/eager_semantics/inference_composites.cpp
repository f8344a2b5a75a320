//===- inference_composites.cpp - Composite ops in inference_mode ---------===//
//
// Ops that PyTorch defines by others are taken apart at the autograd keys. In
// inference_mode these are off, and functionalisation's fallback runs the op
// below itself, where a write through a view reaches nothing (torch 2.13). So
// those that write through views, and what calls them, are taken apart at its
// key too.
//
//===----------------------------------------------------------------------===//

#include <ATen/ops/_pad_circular_native.h>
#include <ATen/ops/_pad_enum_native.h>
#include <ATen/ops/pad_native.h>
#include <torch/library.h>

TORCH_LIBRARY_IMPL(aten, Functionalize, library) {
  library.impl("pad", TORCH_FN(at::native::pad_symint));
  library.impl("_pad_enum", TORCH_FN(at::native::_pad_enum_symint));
  library.impl("_pad_circular", TORCH_FN(at::native::_pad_circular_symint));
}
