//===- bernoulli_draw.h - Random numbers that are 0 or 1 --------*- C++ -*-===//

#ifndef TORCH_LTC_OPS_BERNOULLI_DRAW_H
#define TORCH_LTC_OPS_BERNOULLI_DRAW_H

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace torch_ltc {

/// Calls `memory.bernoulli_(p, generator)`, or computes the same numbers with
/// vector instructions: each element of the CPU tensor becomes 1 with
/// probability `p`, otherwise 0. The generator (the default one if none is
/// given) is in the same state afterwards as after torch's kernel. Returns
/// `memory`. Raises torch's errors.
at::Tensor drawBernoulli(at::Tensor memory, double p,
                         std::optional<at::Generator> generator = {});

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_BERNOULLI_DRAW_H
