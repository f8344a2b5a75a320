"""Losses, with their reductions."""

from __future__ import annotations

import torch
from ops.program import FLOATS, WIDE, Row, any_of, distinct, index, nonzero, positive
from torch.nn import functional as F

logits = any_of(6, 5)
target = any_of(6, 5)
share = any_of(6, 5, low=0.05, high=0.95)
classes = index(5, 6)


def _ignored(i: torch.Tensor) -> torch.Tensor:
    return i.masked_fill(torch.arange(len(i), device=i.device) % 3 == 0, -100)


def _cross(**options):
    return lambda a, i: F.cross_entropy(a, i, **options)


REDUCED = [
    Row(f"{name}-{reduction}", lambda a, b, f=function, r=reduction: f(a, b, reduction=r), inputs, FLOATS)
    for name, function, inputs in [
        ("mse", F.mse_loss, (logits, target)),
        ("l1", F.l1_loss, (logits, nonzero(6, 5))),
        ("smooth_l1", F.smooth_l1_loss, (distinct(6, 5), nonzero(6, 5))),
        ("huber", F.huber_loss, (distinct(6, 5), nonzero(6, 5))),
        ("bce", F.binary_cross_entropy, (share, any_of(6, 5, low=0, high=1))),
        ("bce-logits", F.binary_cross_entropy_with_logits, (logits, share)),
        ("kl", lambda a, b, reduction: F.kl_div(a, b, reduction="batchmean" if reduction == "mean" else reduction), (logits, share)),
        ("soft-margin", lambda a, b, reduction: F.soft_margin_loss(a, b.detach(), reduction=reduction), (logits, nonzero(6, 5))),
    ]
    for reduction in ("none", "mean", "sum")
]  # fmt: skip


def _several_of(i: torch.Tensor) -> torch.Tensor:
    """Returns each sample's target classes, [N, 5]: for a sample of class c, the first c
    columns are the classes from c on (modulo 5), and column c is -1. The loss ignores the
    columns after it."""
    places = torch.arange(5, device=i.device)
    given = (places + i[:, None]) % 5
    return torch.where(places == i[:, None], -1, given)


CLASSES = [
    *(
        Row(f"multilabel_margin-{r}", lambda a, i, r=r: F.multilabel_margin_loss(a, _several_of(i), reduction=r), (logits, classes), WIDE)
        for r in ("none", "mean", "sum")
    ),
    Row("cross_entropy", F.cross_entropy, (logits, classes), FLOATS),
    Row("cross_entropy-sum", _cross(reduction="sum"), (logits, classes), FLOATS),
    Row("cross_entropy-none", _cross(reduction="none"), (logits, classes), FLOATS),
    Row("cross_entropy-smooth", _cross(label_smoothing=0.1), (logits, classes), WIDE),
    Row("cross_entropy-ignore", lambda a, i: F.cross_entropy(a, _ignored(i)), (logits, classes), FLOATS),
    Row("cross_entropy-weight", lambda a, i, w: F.cross_entropy(a, i, w.detach()), (logits, classes, positive(5)), WIDE),
    Row("cross_entropy-shares", lambda a, p: F.cross_entropy(a, p.softmax(1)), (logits, target), WIDE),
    Row("cross_entropy-2d", F.cross_entropy, (any_of(2, 5, 3, 4), index(5, 2, 3, 4)), WIDE),
    Row("nll", lambda a, i: F.nll_loss(F.log_softmax(a, 1), i), (logits, classes), FLOATS),
    Row("nll-none", lambda a, i: F.nll_loss(a, i, reduction="none"), (logits, classes), FLOATS),
    Row("nll-ignore", lambda a, i: F.nll_loss(a, i, ignore_index=2), (logits, classes), FLOATS),
    Row("kl-log-target", lambda a, b: F.kl_div(a, b, log_target=True, reduction="batchmean"), (logits, target), FLOATS),
    Row("bce-logits-weights", lambda a, b, w: F.binary_cross_entropy_with_logits(a, b, pos_weight=w.detach()), (logits, share, positive(5)), WIDE),
    Row("cosine_embedding", lambda a, b: F.cosine_embedding_loss(a, b, torch.ones(6, device=a.device)), (logits, target), WIDE),
    Row("triplet", lambda a, p, n: F.triplet_margin_loss(a, p, n), (logits, target, any_of(6, 5)), WIDE),
    Row("poisson", F.poisson_nll_loss, (logits, positive(6, 5)), WIDE),
    Row("gaussian", F.gaussian_nll_loss, (logits, target, positive(6, 5)), WIDE, reason="the function checks variances with any()"),
]  # fmt: skip

ROWS = [*REDUCED, *CLASSES]
