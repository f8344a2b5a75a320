"""Implements `nn.SyncBatchNorm` on device "lazy".

PyTorch's implementation (2.13) is for GPUs: it calls ops that only GPUs support, one of
which writes to the running statistics without declaring it. This implementation gathers
and reduces the same values by traced ops: each rank sends its mean, variance and count.
Batches may have different sizes, including 0.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


def _by_channel(values: Tensor, like: Tensor) -> Tensor:
    return values.view(1, -1, *(1 for _ in range(like.dim() - 2)))


def _exact(x: Tensor) -> Tensor:
    """Converts `x` to the dtype in which statistics are computed."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _statistics(x: Tensor, group: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the mean and the variance of each channel over all ranks' `x`, and the number
    of values of a channel on all ranks."""
    channels, ranks = x.shape[1], dist.get_world_size(group)
    if x.numel():
        axes = [0, *range(2, x.dim())]
        variance, mean = torch.var_mean(x, axes, correction=0)
    else:
        variance, mean = x.new_zeros(channels), x.new_zeros(channels)
    count = torch.full_like(mean[:1], x.numel() // channels)
    sent = torch.cat([mean, variance, count])
    received = sent.new_empty(ranks * sent.numel())
    dist.all_gather_single(received, sent, group)
    of_ranks = received.view(ranks, -1)
    means, variances, counts = of_ranks.split([channels, channels, 1], 1)
    total = counts.sum()
    weights = counts / total
    mean = (means * weights).sum(0)
    variance = ((variances + (means - mean).square()) * weights).sum(0)
    return mean, variance, total


class _Normalize(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, input: Tensor, weight: Any, bias: Any, eps: float, group: Any
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        x = _exact(input)
        mean, variance, total = _statistics(x, group)
        deviation = (variance + eps).rsqrt()
        ctx.save_for_backward(input, weight, mean, deviation, total)
        ctx.group = group
        ctx.mark_non_differentiable(mean, variance, total)
        scale = deviation if weight is None else deviation * weight
        output = (x - _by_channel(mean, x)) * _by_channel(scale, x)
        if bias is not None:
            output = output + _by_channel(bias, x)
        return output.to(input.dtype), mean, variance, total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple:
        input, weight, mean, deviation, total = ctx.saved_tensors
        x, gradient = _exact(input), _exact(gradients[0])
        centered = x - _by_channel(mean, x)
        axes = [0, *range(2, x.dim())]
        of_bias = gradient.sum(axes)
        of_product = (gradient * centered).sum(axes)
        of_weight = of_product * deviation
        of_input = None
        if ctx.needs_input_grad[0]:
            sums = torch.cat([of_bias, of_product])
            dist.all_reduce(sums, group=ctx.group)
            sum_all, product_all = (sums / total).chunk(2)
            scale = deviation if weight is None else deviation * weight
            slope = deviation.square() * product_all
            of_input = gradient - _by_channel(sum_all, x)
            of_input = of_input - centered * _by_channel(slope, x)
            of_input = (of_input * _by_channel(scale, x)).to(input.dtype)
        # The gradients of weight and bias aren't reduced here, but by
        # DistributedDataParallel.
        wanted = ctx.needs_input_grad
        return (
            of_input,
            of_weight.to(weight.dtype) if wanted[1] else None,
            of_bias.to(weight.dtype if weight is not None else of_bias.dtype)
            if wanted[2]
            else None,
            None,
            None,
        )


def _keep(running: Tensor, seen: Tensor, factor: Any) -> None:
    running.copy_(running * (1 - factor) + seen * factor)


def forward(module: nn.SyncBatchNorm, input: Tensor) -> Tensor:
    module._check_input_dim(input)
    module._check_non_zero_input_channels(input)
    group = module.process_group or dist.group.WORLD
    if dist.get_world_size(group) == 1 and input.numel() == input.shape[1]:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"{input.size()}"
        )
    output, mean, variance, total = _Normalize.apply(
        input, module.weight, module.bias, module.eps, group
    )
    if module.track_running_stats:
        with torch.no_grad():
            module.num_batches_tracked.add_(1)
            # Without momentum, running statistics are the average over all batches.
            factor = module.momentum
            if factor is None:
                factor = 1 / module.num_batches_tracked.to(mean.dtype)
            _keep(module.running_mean, mean, factor)
            _keep(module.running_var, variance * (total / (total - 1)), factor)
    return output
