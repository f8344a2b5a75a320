"""Decompositions of layer, group, RMS and batch norm and of their gradients."""

import pytest
import torch
from decompositions.comparison import compare
from decompositions.torch_stage import DecompositionError, decompose, write_program
from torch_text import Parameter

FLOATS = [torch.float32, torch.float64, torch.bfloat16]
# A tolerance that is wide enough for gradients of weights, which are sums over whole
# batches.
WIDE = {"rtol": 1e-4, "atol": 1e-5}


def tolerance(dtype):
    return {"rtol": 2e-2, "atol": 1e-2} if dtype == torch.bfloat16 else WIDE


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [[7], [4, 7], [3, 4, 7]])
@pytest.mark.parametrize("affine", ["both", "weight", "none"])
def test_layer_norm(dtype, shape, affine):
    x = (torch.randn(3, 4, 7) * 2 + 1).to(dtype)
    weight = torch.randn(shape).to(dtype) if affine != "none" else None
    bias = torch.randn(shape).to(dtype) if affine == "both" else None
    compare("aten.native_layer_norm", x, shape, weight, bias, 1e-5, **tolerance(dtype))
    _, mean, rstd = torch.ops.aten.native_layer_norm(x, shape, weight, bias, 1e-5)
    grad = torch.randn_like(x)
    mask = [True, weight is not None, bias is not None]
    arguments = [grad, x, shape, mean, rstd, weight, bias]
    compare("aten.native_layer_norm_backward", *arguments, mask, **tolerance(dtype))


def test_layer_norm_mixed_dtypes():
    x, weight = torch.randn(3, 8).bfloat16(), torch.randn(8)
    text = compare(
        "aten.native_layer_norm",
        x,
        [8],
        weight,
        weight,
        Parameter(1e-5),
        rtol=2e-2,
        atol=1e-2,
    )
    assert "aten.rsqrt" in text


def test_layer_norm_far_from_zero():
    x = torch.randn(4, 256) + 1000
    compare("aten.native_layer_norm", x, [256], None, None, 1e-5, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm(dtype, affine):
    x = (torch.randn(2, 6, 3, 5) + 1).to(dtype)
    weight = torch.randn(6).to(dtype) if affine else None
    bias = torch.randn(6).to(dtype) if affine else None
    compare(
        "aten.native_group_norm", x, weight, bias, 2, 6, 15, 3, 1e-5, **tolerance(dtype)
    )
    _, mean, rstd = torch.ops.aten.native_group_norm(x, weight, bias, 2, 6, 15, 3, 1e-5)
    arguments = [torch.randn_like(x), x, mean, rstd, weight, 2, 6, 15, 3]
    mask = [True, affine, affine]
    compare("aten.native_group_norm_backward", *arguments, mask, **tolerance(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("eps", [None, 1e-3])
def test_rms_norm(dtype, eps):
    x, weight = torch.randn(3, 4, 8).to(dtype), torch.randn(8).to(dtype)
    for w in (weight, None):
        compare("aten._fused_rms_norm", x, [8], w, eps, **tolerance(dtype))


def test_rms_norm_backward():
    # PyTorch has no CPU kernel for this op, so autograd of the forward op is the reference.
    x = torch.randn(3, 4, 8, requires_grad=True)
    weight = torch.randn(8, requires_grad=True)
    grad = torch.randn(3, 4, 8)
    y = torch.nn.functional.rms_norm(x, [8], weight, 1e-5)
    expected = torch.autograd.grad(y, (x, weight), grad)
    x, weight = x.detach(), weight.detach()
    rstd = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)
    arguments = [grad, x, [8], rstd]
    op = "aten._fused_rms_norm_backward"
    compare(op, *arguments, weight, [True, True], expected=expected, **WIDE)
    half = [expected[0], None]
    compare(op, *arguments, weight, [True, False], expected=half, **WIDE)


#
# Batch norm
#


def batch(dtype, sizes=(4, 3, 5, 6)):
    x = (torch.randn(sizes) * 2 + 1).to(dtype)
    parameters = [torch.randn(3), torch.randn(3), torch.randn(3), torch.rand(3) + 0.5]
    return x, [p.to(dtype) for p in parameters]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(dtype, training, affine):
    x, (weight, bias, mean, var) = batch(dtype)
    w, b = (weight, bias) if affine else (None, None)
    close = tolerance(dtype)
    settings = [training, 0.1, 1e-5]
    compare(
        "aten._native_batch_norm_legit_functional",
        x,
        w,
        b,
        mean,
        var,
        *settings,
        **close,
    )
    compare("aten.native_batch_norm", x, w, b, mean, var, *settings, **close)
    compare("aten._native_batch_norm_legit", x, w, b, mean, var, *settings, **close)
    if training:
        compare("aten.native_batch_norm", x, w, b, None, None, *settings, **close)
        compare("aten._native_batch_norm_legit.no_stats", x, w, b, *settings, **close)
    else:
        compare(
            "aten._native_batch_norm_legit_no_training",
            x,
            w,
            b,
            mean,
            var,
            *settings[1:],
            **close,
        )


@pytest.mark.parametrize("sizes", [(8, 3), (4, 3, 5), (2, 3, 2, 3, 4)])
def test_batch_norm_ranks(sizes):
    x, (weight, bias, mean, var) = batch(torch.float32, sizes)
    compare(
        "aten._native_batch_norm_legit_functional",
        x,
        weight,
        bias,
        mean,
        var,
        True,
        Parameter(0.3),
        Parameter(1e-5),
        **WIDE,
    )


def test_batch_norm_mixed_dtypes():
    x, parameters = batch(torch.float32)
    compare(
        "aten._native_batch_norm_legit_functional",
        x.bfloat16(),
        *parameters,
        True,
        0.1,
        1e-5,
        rtol=2e-2,
        atol=1e-2,
    )


def test_batch_norm_without_statistics():
    x, (weight, bias, *_) = batch(torch.float32)
    results = torch.ops.aten.native_batch_norm(
        x, weight, bias, None, None, True, 0.1, 1e-5
    )
    text, _ = write_program(
        "aten.native_batch_norm",
        [x, weight, bias, None, None, False, 0.1, 1e-5],
        results,
    )
    with pytest.raises(DecompositionError, match="neither a batch nor running"):
        decompose(text)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_backward(dtype, train, affine):
    x, (weight, _, mean, var) = batch(dtype)
    w = weight if affine else None
    grad = torch.randn(x.shape).to(dtype)
    _, save_mean, save_invstd = torch.ops.aten.native_batch_norm(
        x, w, None, mean.clone(), var.clone(), train, 0.1, 1e-5
    )
    arguments = [grad, x, w, mean, var, save_mean, save_invstd, train, 1e-5]
    mask = [True, affine, affine]
    op = "aten.native_batch_norm_backward"
    compare(op, *arguments, mask, **tolerance(dtype))
    compare(op, *arguments, [not affine, True, False], **tolerance(dtype))
