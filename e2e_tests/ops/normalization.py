"""Batch, layer, group, instance and RMS normalization."""

from __future__ import annotations

import torch
from ops.program import BF16, F32, FLOATS, WIDE, Row, any_of, positive
from torch.nn import functional as F

x = any_of(4, 6, 5)
image = any_of(4, 6, 5, 3)
weight, bias = positive(6), any_of(6)


def _train(a, w, b, mean, variance):
    """Returns the result and the updated statistics."""
    mean, variance = mean.detach().clone(), variance.detach().clone()
    result = F.batch_norm(a, mean, variance, w, b, training=True, momentum=0.2)
    return result, mean, variance


def _evaluate(a, w, b, mean, variance):
    return F.batch_norm(a, mean.detach(), variance.detach(), w, b, training=False)


statistics = (any_of(6), positive(6))

ROWS = [
    Row("batch_norm-train", _train, (image, weight, bias, *statistics), WIDE, tolerance=1e-4),
    Row("batch_norm-eval", _evaluate, (image, weight, bias, *statistics), WIDE, tolerance=1e-4),
    Row("batch_norm-1d", _train, (any_of(8, 6), weight, bias, *statistics), WIDE, tolerance=1e-4),
    Row("batch_norm-no-affine", lambda a: F.batch_norm(a, None, None, training=True), (image,), WIDE, tolerance=1e-4),
    Row("layer_norm", lambda a, w, b: F.layer_norm(a, (5,), w, b), (x, positive(5), any_of(5)), WIDE, tolerance=1e-4),
    Row("layer_norm-bf16", lambda a: F.layer_norm(a, (5,)), (x,), (BF16,), tolerance=5e-2),
    Row("layer_norm-two-dims", lambda a, w, b: F.layer_norm(a, (6, 5), w, b), (x, positive(6, 5), any_of(6, 5)), WIDE, tolerance=1e-4),
    Row("layer_norm-no-affine", lambda a: F.layer_norm(a, (5,)), (x,), WIDE, tolerance=1e-4),
    Row("group_norm", lambda a, w, b: F.group_norm(a, 3, w, b), (image, weight, bias), WIDE, tolerance=1e-4),
    Row("instance_norm", lambda a: F.instance_norm(a), (image,), (F32,), tolerance=1e-4),
    Row("rms_norm", lambda a, w: F.rms_norm(a, (5,), w), (x, positive(5)), WIDE, tolerance=1e-4),
    Row("local_response_norm", lambda a: F.local_response_norm(a, 3), (image,), (F32,), tolerance=1e-4),
    Row("standardise-by-hand", lambda a: (a - a.mean(1, keepdim=True)) / (a.var(1, keepdim=True) + 1e-5).sqrt(), (x,), WIDE, tolerance=1e-4),
    Row("weight_norm", lambda v, g: torch._weight_norm(v, g, 0), (any_of(4, 5), positive(4, 1)), WIDE, tolerance=1e-4),
    Row("weight_norm-last-dim", lambda v, g: torch._weight_norm(v, g, 2), (any_of(2, 4, 5), positive(5)), WIDE, tolerance=1e-4),
    Row("softmax-then-norm", lambda a: F.layer_norm(F.softmax(a, -1), (5,)), (x,), FLOATS[:2], tolerance=1e-4),
]  # fmt: skip
