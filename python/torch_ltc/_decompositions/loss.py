"""Decompositions of margin losses over several classes."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_ltc._decompositions.checks import zero_if


def _positive_part(x: Tensor) -> Tensor:
    """Returns max(x, 0). The value and the gradient are 0 for NaN. The gradient at 0 is 0,
    unlike that of `clamp`."""
    return torch.where(x > 0, x, 0)


def multi_margin_loss(
    x: Tensor,
    target: Tensor,
    p: float = 1,
    margin: float = 1,
    weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    scores, classes = torch.atleast_2d(x), torch.atleast_1d(target)
    count = scores.shape[1]
    fits = classes.shape == scores.shape[:1] and p in (1, 2)
    if not fits or (weight is not None and weight.shape != (count,)):
        raise ValueError("eager has the message")
    zero = zero_if((target >= 0) & (target < count), "target out of range")
    places = (classes.clamp(0, count - 1) + zero).unsqueeze(1)
    margins = _positive_part(margin - scores.gather(1, places) + scores)
    margins = margins if p == 1 else margins * margins
    if weight is not None:
        margins = margins * weight[places]
    others = torch.arange(count, device=x.device) != places
    margins = torch.where(others, margins, 0)
    if reduction == 1:
        return margins.mean()
    if reduction == 2:
        return margins.sum() / count
    loss = margins.mean(1)
    return loss.reshape(()) if x.dim() <= 1 and target.dim() == 0 else loss


def multi_margin_loss_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    p: float,
    margin: float,
    weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    scores, classes = torch.atleast_2d(x), torch.atleast_1d(target).unsqueeze(1)
    samples, count = scores.shape
    share = 1 / (samples * count if reduction == 1 else count)
    margins = margin - scores.gather(1, classes) + scores
    slopes = 2 * share * margins if p == 2 else torch.full_like(margins, share)
    if weight is not None:
        slopes = slopes * weight[classes]
    others = torch.arange(count, device=x.device) != classes
    slopes = torch.where((margins > 0) & others, slopes, 0.0)
    slopes = torch.where(others, slopes, -slopes.sum(1, keepdim=True))
    return (slopes * grad.reshape(-1, 1)).reshape(x.shape)


def multilabel_margin_loss_forward(
    x: Tensor, target: Tensor, reduction: int
) -> tuple[Tensor, Tensor]:
    """Returns the loss, and a mask of the target classes in x's dtype. PyTorch's formula
    (torch 2.13) isn't used, because it also counts the positions after the last class."""
    if x.dim() > 2 or x.shape[-1:] == (0,):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, "
            f"but got: {list(x.shape)}"
        )
    if target.shape != x.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: "
            f"{list(x.shape)}"
        )
    margins, counts, is_target, _ = _label_margins(x, target)
    count = margins.shape[-1]
    zero = zero_if(
        (target >= -1) & (target < count), "argument #2 'target' is out of range"
    )
    loss = torch.where(counts, _positive_part(margins) / count, 0)
    loss = loss.sum((1, 2)) + zero.to(x.dtype)
    if reduction:  # 1 is the mean, 2 the sum
        loss = loss.mean() if reduction == 1 else loss.sum()
    elif x.dim() <= 1:
        loss = loss.reshape(())
    return loss, is_target.to(x.dtype).reshape(x.shape)


def multilabel_margin_loss_backward(
    grad: Tensor, x: Tensor, target: Tensor, reduction: int, is_target: Tensor
) -> Tensor:
    del is_target
    margins, counts, _, classes = _label_margins(x, target)
    samples, _, count = margins.shape
    share = 1 / (samples * count if reduction == 1 else count)
    slopes = (counts & (margins > 0)).to(x.dtype) * share
    made = slopes.sum(1).scatter_add(1, classes, -slopes.sum(2))
    return (made * grad.reshape(-1, 1)).reshape(x.shape)


def _label_margins(x: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the margins [sample, position in `target`, class], a mask of the margins that
    count, a mask of the target classes [sample, class], and the target class at each
    position (0 where `target` has none)."""
    scores, classes = torch.atleast_2d(x), torch.atleast_2d(target)
    count = scores.shape[1]
    places = torch.arange(count, device=x.device)
    ends = torch.where(classes == -1, places, count).amin(1, keepdim=True)
    is_given = places < ends
    inside = torch.where(is_given, classes, 0).clamp(0, count - 1)
    is_target = (torch.where(is_given, classes, -1).unsqueeze(2) == places).any(1)
    margins = 1 - scores.gather(1, inside).unsqueeze(2) + scores.unsqueeze(1)
    counts = is_given.unsqueeze(2) & ~is_target.unsqueeze(1)
    return margins, counts, is_target, inside
