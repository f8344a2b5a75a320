"""Decompositions of losses and their gradients, for each reduction."""

import pytest
import torch
from decompositions.comparison import compare
from decompositions.torch_stage import Evaluator, decompose, write_program
from torch_text import Parameter

FLOATS = [torch.float32, torch.float64, torch.bfloat16]
REDUCTIONS = [0, 1, 2]
PAIRS = {
    "mse_loss": [],
    "smooth_l1_loss": [0.7],
    "huber_loss": [0.7],
}


def gradient(loss_sizes, reduction, dtype):
    return torch.randn(loss_sizes if reduction == 0 else ()).to(dtype)


@pytest.mark.parametrize("op", PAIRS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_distances(op, dtype, reduction):
    x, target = torch.randn(3, 5).to(dtype), torch.randn(3, 5).to(dtype)
    x[0, 0] = target[0, 0]
    compare(f"aten.{op}", x, target, reduction, *PAIRS[op])
    grad = gradient((3, 5), reduction, dtype)
    compare(f"aten.{op}_backward", grad, x, target, reduction, *PAIRS[op])


@pytest.mark.parametrize("op", ["smooth_l1_loss", "huber_loss"])
def test_distances_with_parameters(op):
    x, target = torch.randn(3, 5), torch.randn(3, 5)
    limit = Parameter(0.6)
    compare(f"aten.{op}", x, target, 1, limit)
    compare(f"aten.{op}_backward", torch.tensor(2.0), x, target, 1, limit)


def test_distances_broadcast():
    x, target = torch.randn(3, 5), torch.randn(5)
    compare("aten.mse_loss", x, target, 1)
    compare("aten.mse_loss", x, target, 0)
    compare("aten.smooth_l1_loss", x, target, 2, 1.0)


def test_no_limit_is_l1():
    x, target = torch.randn(3, 5), torch.randn(3, 5)
    compare("aten.smooth_l1_loss", x, target, 1, 0.0)
    compare("aten.smooth_l1_loss_backward", torch.tensor(1.0), x, target, 1, 0.0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [True, False])
def test_binary_cross_entropy(dtype, reduction, weighted):
    x, target = torch.rand(3, 5).to(dtype), torch.rand(3, 5).to(dtype)
    x[0, 0], x[0, 1] = 0.0, 1.0
    target[0] = torch.tensor([1, 1, 0, 1, 0])
    weight = torch.rand(3, 5).to(dtype) if weighted else None
    compare("aten.binary_cross_entropy", x, target, weight, reduction)
    grad = gradient((3, 5), reduction, dtype)
    compare("aten.binary_cross_entropy_backward", grad, x, target, weight, reduction)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("positive", [True, False])
def test_binary_cross_entropy_with_logits(dtype, reduction, weighted, positive):
    x, target = (5 * torch.randn(3, 5)).to(dtype), torch.rand(3, 5).to(dtype)
    x[0, 0], x[0, 1] = 100.0, -100.0
    weight = torch.rand(5).to(dtype) if weighted else None
    pos_weight = torch.rand(5).to(dtype) if positive else None
    compare(
        "aten.binary_cross_entropy_with_logits",
        x,
        target,
        weight,
        pos_weight,
        reduction,
        atol=1e-3 if dtype == torch.bfloat16 else None,
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_soft_margin(reduction):
    target = torch.tensor([1.0, -1.0, 1.0])
    compare("aten.soft_margin_loss", torch.randn(3), target, reduction)


#
# Negative log likelihood
#


def likelihoods(sizes, classes=6):
    """Returns log probabilities with classes in dimension 1, and targets of `sizes`."""
    x = torch.randn(sizes[0], classes, *sizes[1:]).log_softmax(1)
    return x, torch.randint(0, classes, sizes)


def compare_nll(suffix, x, target, weight, reduction, ignored):
    forward, backward = (
        f"aten.nll_loss{suffix}_forward",
        f"aten.nll_loss{suffix}_backward",
    )
    close = {"rtol": 2e-2} if x.dtype == torch.bfloat16 else {}
    compare(forward, x, target, weight, reduction, ignored, **close)
    forward_op = getattr(torch.ops.aten, f"nll_loss{suffix}_forward")
    loss, total = forward_op(x, target, weight, reduction, ignored)
    grad = torch.randn(loss.shape).to(x.dtype)
    compare(backward, grad, x, target, weight, reduction, ignored, total, **close)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("ignored", [-100, 2])
def test_nll(dtype, reduction, weighted, ignored):
    x, target = likelihoods((8,))
    target[3] = ignored
    weight = torch.rand(6).to(dtype) if weighted else None
    compare_nll("", x.to(dtype), target, weight, reduction, ignored)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("ignored", [-100, 2])
def test_nll_of_images(reduction, weighted, ignored):
    x, target = likelihoods((2, 3, 4))
    target[0, 1, 2] = ignored
    weight = torch.rand(6) if weighted else None
    compare_nll("2d", x, target, weight, reduction, ignored)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll_of_one_row(reduction):
    x = torch.randn(6).log_softmax(0)
    compare_nll("", x, torch.tensor(4), torch.rand(6), reduction, -100)
    compare_nll("", x, torch.tensor(-100), None, reduction, -100)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll_all_ignored(reduction):
    x, target = likelihoods((4,))
    compare_nll("", x, torch.full_like(target, -100), None, reduction, -100)


def test_nll_infinite_likelihood_of_ignored_row():
    x, target = likelihoods((4,))
    x[2] = -float("inf")
    target[2] = -100
    compare_nll("", x, target, torch.rand(6), 1, -100)


@pytest.mark.parametrize("wrong", [6, -1, 2**40])
def test_nll_wrong_target_reaches_the_gather(wrong):
    """The decomposition leaves an invalid class unchanged, so that the check of the gather
    (here eager's) detects it; clamping the class would give a wrong result."""
    x, target = likelihoods((4,))
    arguments = [x, target, None, 0, -100]
    text, _ = write_program(
        "aten.nll_loss_forward", arguments, torch.ops.aten.nll_loss_forward(*arguments)
    )
    bad = target.clone()
    bad[1] = wrong
    with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds"):
        Evaluator(decompose(text)).run([x, bad])
