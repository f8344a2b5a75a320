"""Ops called through the dispatcher with odd arguments: ranks, sizes, dtypes, dims and
indices that nobody passes on purpose. No call may crash, and eager decides which calls
raise."""

from __future__ import annotations

import random

import pytest
import torch
import torch_ltc
from fuzz.odd_arguments import odd_call
from fuzz.odd_calls import compare, run, sweep
from fuzz.recorded_calls import Call

aten = torch.ops.aten


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 5))
def test_full(seed: int) -> None:
    _none_fails("--each", "20", "--seed", str(seed))


def _none_fails(*arguments: str) -> None:
    failed = [outcome for outcome in sweep(list(arguments)) if outcome.fails]
    assert not failed, "\n".join(f"{o.kind}: {o.call}: {o.detail}" for o in failed)


LOGITS, CLASSES = torch.linspace(-1, 1, 12).reshape(3, 4), torch.tensor([2, 0, 1])

#: Calls that failed once: the schemas allow the arguments, but programs don't pass them.
FOUND = {
    "a gradient of one element": (aten.nll_loss_backward.default, torch.ones(1), LOGITS, CLASSES, torch.ones(4), 1, 10, torch.tensor(1.5)),
    "the same in two dimensions": (aten.nll_loss2d_backward.default, torch.ones(1), torch.ones(1, 2, 1, 1), torch.zeros(1, 1, 1, dtype=torch.int64), None, 1, -100, torch.tensor(1.0)),
    "an unknown reduction": (aten.huber_loss.default, LOGITS, LOGITS + 1, -7, 0.5),
    "a broadcast gradient of a diagonal": (aten.diagonal_backward.default, torch.ones(1), [3, 4], 0, 0, 1),
    "of a row": (aten.select_backward.default, torch.ones(1), [3, 4], 0, 1),
    "of some rows": (aten.slice_backward.default, torch.ones(1, 4), [3, 4], 0, 0, 2, 1),
    "a softmax with a different dtype": (aten._softmax_backward_data.default, LOGITS.double(), LOGITS.double(), 1, torch.float32),
    "an embedding's gradient with a different rank": (aten.embedding_dense_backward.default, torch.ones(3), CLASSES, 4, -1, False),
    "integers for an op that requires floats": (aten.mish.default, CLASSES),
    "bools for an op that requires floats": (aten.softplus.default, CLASSES > 0),
    "a weight that would broadcast": (aten.native_group_norm_backward.default, torch.ones(1, 2, 3), torch.ones(1, 2, 3), torch.zeros(1, 1), torch.ones(1, 1), torch.ones(1), 1, 2, 3, 1, [True, True, True]),
    "a source with a different dtype": (aten.as_strided_scatter.default, torch.ones(1), torch.tensor(2.5, dtype=torch.float64), [], [], 0),
    "a convolution with a gradient of different sizes": (aten.convolution_backward.default, torch.ones(1, 1, 3), torch.ones(1, 1, 5), torch.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1, [True, True, False]),
    "flip of a number": (aten.flip.default, torch.tensor(2.5), [0]),
    "a list with one stride": (aten.convolution.default, torch.ones(1, 1, 5, 5), torch.ones(1, 1, 2, 2), None, [1], [0], [1], False, [0], 1),
    "no input channels": (aten.convolution.default, torch.ones(2, 0, 8), torch.ones(4, 0, 3), torch.ones(4), [1], [0], [1], False, [0], 1),
    "the inner convolution": (aten._convolution.default, torch.ones(1, 1, 5, 5), torch.ones(2, 1, 2, 2), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, False, False, True, True),
    "a median of an empty integer tensor": (aten.nanmedian.default, torch.tensor([], dtype=torch.int64)),
    "a number above int64": (aten.eq.Scalar, torch.tensor([2**64 - 1, 1], dtype=torch.uint64), 2**64 - 1),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    op, *args = FOUND[name]
    outcome = compare(Call(op, tuple(args)))
    assert not outcome.kind, f"{outcome.kind}: {outcome.call}: {outcome.detail}"


#: Calls for which eager reads out of bounds or crashes, so that no result is expected.
CRASHING = {
    "no pivots": (aten.lu_unpack.default, torch.ones(3, 5), torch.zeros(0, dtype=torch.int32)),
    "pivots of another rank": (aten.lu_unpack.default, torch.ones(3, 3), torch.ones(3, 3, dtype=torch.int32)),
    "a transform along no dimension": (aten._fft_c2r.default, torch.ones(31, dtype=torch.complex64), [-2], 0, 60),
    "distances of no rows": (aten._pdist_backward.default, torch.zeros(0), torch.zeros(0, 1), -1.0, torch.ones(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", CRASHING)
def test_what_crashes_eager_is_an_error(name: str) -> None:
    op, *args = CRASHING[name]
    with pytest.raises((RuntimeError, IndexError), match=r"lu_unpack|_fft|_pdist"):
        run(Call(op, tuple(args)), "lazy")


def test_histograms_count_integers() -> None:
    """Integers are counted as on other devices; only the CPU's kernel rejects them."""
    x = torch.tensor([0, 1, 1, 3], dtype=torch.int32, device="lazy")
    counts = torch.histc(x, bins=4, min=0, max=3)
    assert counts.dtype == torch.int32
    assert counts.tolist() == [1, 2, 0, 1]


def test_a_rejected_call_is_no_fallback_where_none_may_be() -> None:
    x = torch.ones(3, device="lazy")
    with torch_ltc.debug.no_fallback(), pytest.raises(RuntimeError, match="match the"):
        torch.add(x, torch.ones(2, device="lazy"))


def test_a_seed_is_a_call() -> None:
    call = Call(aten.add.Tensor, (torch.ones(2, 3), torch.ones(3)), {"alpha": 2})
    same = [odd_call(call, random.Random(4)) for _ in range(2)]
    assert str(same[0]) == str(same[1])
    others = {str(odd_call(call, random.Random(k))) for k in range(20)}
    assert len(others) > 10
