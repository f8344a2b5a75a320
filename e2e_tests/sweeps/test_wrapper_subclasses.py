"""Ops of wrapper subclasses on device lazy: the tensor inside a result is a functional
wrapper, like every lazy tensor that a user holds, and has eager's values."""

from __future__ import annotations

import itertools

import pytest
import torch
from comparison import assert_close
from sweeps.exclusions import is_excluded
from sweeps.opinfo import entries, entry_name
from sweeps.wrapper_subclasses import Wrapper, failures
from torch.testing._internal import composite_compliance as compliance
from torch.testing._internal.common_utils import TestCase

PARTS = 8

COMPLIANT = (
    "add",
    "broadcast_to",
    "diagonal",
    "expand",
    "index_put",
    "kron",
    "matmul",
    "nn.functional.layer_norm",
    "nn.functional.linear_cross_entropy.chunked",
    "softmax",
    "squeeze",
    "stack",
    "unfold",
    "view",
)


@pytest.mark.parametrize("part", range(PARTS))
def test_ops(part):
    ops = [op for op in entries(torch.float32) if not is_excluded(entry_name(op))]
    wrong = {entry_name(op): list(failures(op, 2)) for op in ops[part::PARTS]}
    assert not any(wrong.values()), {k: v for k, v in wrong.items() if v}


@pytest.mark.parametrize("name", COMPLIANT)
def test_compliance(name):
    """PyTorch's checks of composite ops on subclasses pass. The checks clone storages, and
    need views that share a wrapper's storage below `__torch_dispatch__`."""
    entry = next(op for op in entries(torch.float32) if entry_name(op) == name)
    assert_equal = TestCase().assertEqual
    for sample in itertools.islice(entry.sample_inputs("lazy", torch.float32), 2):
        args = [sample.input, *sample.args]
        for check in compliance.check_with_mode, compliance.check_all_permutations:
            check(entry.get_op(), args, sample.kwargs, assert_equal)
    for sample in itertools.islice(
        entry.sample_inputs("lazy", torch.float32, requires_grad=True), 2
    ):
        args, wrapper = [sample.input, *sample.args], entry.gradcheck_wrapper
        compliance.check_backward_formula(
            entry.get_op(), args, sample.kwargs, None, wrapper, assert_equal
        )
        compliance.check_forward_ad_formula(
            entry.get_op(), args, sample.kwargs, wrapper, assert_equal
        )


def test_an_optimizer_over_wrappers():
    """An optimizer whose parameters are wrappers updates the tensors inside them in
    place."""

    def train(device: str) -> list[torch.Tensor]:
        torch.manual_seed(1)
        start = torch.randn(4, 3).to(device)
        weight = torch.nn.Parameter(Wrapper(start))
        optimizer = torch.optim.Adam([weight], lr=0.1, foreach=True)
        for _ in range(3):
            weight.grad = Wrapper(weight.detach().inner * 2)
            optimizer.step()
        assert weight.inner.untyped_storage().data_ptr() == (
            start.untyped_storage().data_ptr()
        )
        return [weight.detach().inner.cpu(), start.cpu()]

    assert_close(train("lazy"), train("cpu"))
