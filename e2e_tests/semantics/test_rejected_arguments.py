"""Sizes and dtypes that eager rejects before its kernel runs raise an error of eager's
class with eager's message, and no kernel reads out of bounds."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch.nn import functional as F


def _batch_norm(
    mean: int = 3, var: int = 3, weight: int | None = None, bias: int | None = None,
    training: bool = True, rows: int = 4,
) -> Callable:  # fmt: skip
    def call(device: str) -> torch.Tensor:
        def vector(size: int | None) -> torch.Tensor | None:
            return None if size is None else torch.ones(size).to(device)

        x = torch.ones(rows, 3).to(device)
        return F.batch_norm(
            x, vector(mean), vector(var), vector(weight), vector(bias), training
        )

    return call


def _complex(device: str) -> torch.Tensor:
    return torch.ones(2, 3, 4, dtype=torch.complex64).to(device)


def _squeezed_leaf(device: str) -> torch.Tensor:
    leaf = torch.ones(1, 2, device=device, requires_grad=True)
    view = leaf[0]
    leaf.squeeze_()
    return view


def _filled(name: str, dtype: torch.dtype, *numbers: float) -> Callable:
    return lambda d: getattr(torch.zeros(3, dtype=dtype).to(d), name)(*numbers)


def _made(name: str, number: complex, dtype: torch.dtype) -> Callable:
    """Returns a function that creates tensors from accepted numbers (1, -1 and the limits
    of a floating-point dtype), and then one from `number`."""

    def call(device: str) -> torch.Tensor:
        x = torch.zeros(3, dtype=dtype, device=device)
        rows = torch.zeros(2, dtype=torch.int64, device=device)
        functions: dict[str, Callable[[complex], torch.Tensor]] = {
            "full": lambda n: torch.full((2,), n, dtype=dtype, device=device),
            "large full": lambda n: torch.full((90, 90), n, dtype=dtype, device=device),
            "scalar_tensor": lambda n: torch.scalar_tensor(n, dtype=dtype, device=device),
            "full_like": lambda n: torch.full_like(x, n),
            "new_full": lambda n: x.new_full((2,), n),
            "fill_": lambda n: x.fill_(n),
            "setitem": lambda n: x.__setitem__(0, n),
            "masked_fill": lambda n: x.masked_fill(x == 0, n),
            "index_fill": lambda n: x.index_fill(0, rows, n),
            "scatter": lambda n: x.scatter(0, rows, n),
            "pad": lambda n: F.pad(x, (1, 1), value=n),
        }  # fmt: skip
        known = [1, -1]
        if dtype.is_floating_point:
            known += [torch.finfo(dtype).max, torch.finfo(dtype).min]
        for accepted in known:
            functions[name](accepted)
        return functions[name](number)

    return call


_NAN, _INF = float("nan"), float("inf")


def _rank(dtype: torch.dtype, device: str) -> torch.Tensor:
    out = torch.empty((), dtype=dtype, device=device)
    return torch.linalg.matrix_rank(torch.eye(2, device=device), out=out)


CASES: dict[str, Callable] = {
    "t_ of three dims": lambda d: torch.ones(2, 3, 4, device=d).t_(),
    "squeeze_ of a missing dim": lambda d: torch.ones(2, device=d).squeeze_(5),
    "transpose_ of a missing dim": lambda d: torch.ones(2, device=d).transpose_(0, 5),
    "unsqueeze_ at a missing dim": lambda d: torch.ones(2, device=d).unsqueeze_(5),
    "shape of a leaf that has a view": _squeezed_leaf,
    "rank as a boolean": lambda d: _rank(torch.bool, d),
    "batch_norm of one value": _batch_norm(rows=1),
    "batch_norm of integers": lambda d: F.batch_norm(
        torch.ones(4, 3, dtype=torch.int64, device=d), None, None, training=True
    ),
    "instance_norm of bytes": lambda d: F.instance_norm(
        torch.ones(4, 3, 2, dtype=torch.uint8, device=d)
    ),
    "negative stride": lambda d: torch.empty_strided((2,), (-1,), device=d),
    "new negative stride": lambda d: torch.ones(1, device=d).new_empty_strided(
        (2, 2), (1, -2)
    ),
    "batch_norm running_mean": _batch_norm(mean=2),
    "batch_norm running_var": _batch_norm(var=5),
    "batch_norm weight": _batch_norm(weight=2),
    "batch_norm bias": _batch_norm(weight=3, bias=4),
    "batch_norm evaluated running_mean": _batch_norm(mean=2, training=False),
    "batch_norm evaluated weight": _batch_norm(weight=2, training=False),
    "batch_norm evaluated without": _batch_norm(None, None, training=False),
    "instance_norm of one value": lambda d: F.instance_norm(torch.ones(2, 3, 1).to(d)),
    "group_norm weight": lambda d: F.group_norm(torch.ones(2, 4, 4).to(d), 2, torch.ones(3).to(d)),
    "layer_norm weight": lambda d: F.layer_norm(torch.ones(2, 4).to(d), (4,), torch.ones(3).to(d)),
    "log_normal_ of integers": _filled("log_normal_", torch.int64),
    "geometric_ of bools": _filled("geometric_", torch.bool, 0.5),
    "geometric_ above 1": _filled("geometric_", torch.float32, 1.5),
    "exponential_ of integers": _filled("exponential_", torch.int64),
    "cauchy_ of integers": _filled("cauchy_", torch.int64),
    "normal_ of integers": _filled("normal_", torch.int64),
    "normal_ of a negative deviation": _filled("normal_", torch.float32, 0, -1),
    "uniform_ of integers": _filled("uniform_", torch.int64),
    "bernoulli of integers": lambda d: torch.ones(3, dtype=torch.int64).to(d).bernoulli(),
    "bernoulli of complex": lambda d: torch.ones(3, dtype=torch.complex64).to(d).bernoulli(),
    "max_pool1d of integers": lambda d: F.max_pool1d(torch.ones(2, 4, dtype=torch.int64).to(d), 2),
    "max_pool1d of bools": lambda d: F.max_pool1d(torch.ones(2, 4, dtype=torch.bool).to(d), 2),
    "max_pool1d of integers by 0": lambda d: F.max_pool1d(torch.ones(2, 4, dtype=torch.int64).to(d), 0),
    "batch_norm of complex": lambda d: F.batch_norm(_complex(d), torch.zeros(3).to(d), torch.ones(3).to(d), training=True),
    "batch_norm of complex, evaluated": lambda d: F.batch_norm(_complex(d), torch.zeros(3).to(d), torch.ones(3).to(d)),
    "instance_norm of complex": lambda d: F.instance_norm(_complex(d)),
    "batch_norm of a running mean with gradient": lambda d: F.batch_norm(torch.ones(4, 3).to(d), torch.zeros(3).to(d).requires_grad_(), torch.ones(3).to(d), training=True),
    "native_batch_norm of a variance with gradient": lambda d: torch.native_batch_norm(torch.ones(4, 3).to(d), None, None, torch.zeros(3).to(d), torch.ones(3).to(d).requires_grad_(), True, 0.1, 1e-5)[0],
    "dropout of complex": lambda d: F.dropout(_complex(d)),
    "dropout of integers": lambda d: F.dropout(torch.ones(3, dtype=torch.int64).to(d)),
    "full of nan": _made("full", _NAN, torch.int64),
    "large full of nan": _made("large full", _NAN, torch.int64),
    "full of inf": _made("full", _INF, torch.int32),
    "full above uint8": _made("full", 300, torch.uint8),
    "full below uint8": _made("full", -300, torch.uint8),
    "full above int32": _made("full", 2**40, torch.int32),
    "full above float16": _made("full", 1e10, torch.float16),
    "full slightly above float16": _made("full", 65519.0, torch.float16),
    "full slightly above bfloat16": _made("full", 3.395e38, torch.bfloat16),
    "full of a negative fraction": _made("full", -2.5, torch.uint8),
    "full above float32": _made("full", 1e39, torch.float32),
    "full of a complex number": _made("full", 1 + 2j, torch.float32),
    "scalar_tensor of nan": _made("scalar_tensor", _NAN, torch.int64),
    "scalar_tensor above int8": _made("scalar_tensor", 300, torch.int8),
    "full_like above uint8": _made("full_like", 256, torch.uint8),
    "new_full of inf": _made("new_full", -_INF, torch.int64),
    "fill_ above float16": _made("fill_", -70000.0, torch.float16),
    "fill_ above int8": _made("fill_", 200, torch.int8),
    "setitem of nan": _made("setitem", _NAN, torch.int64),
    "masked_fill above int8": _made("masked_fill", 200, torch.int8),
    "index_fill above int8": _made("index_fill", 200, torch.int8),
    "scatter above int8": _made("scatter", 200, torch.int8),
    "pad above int8": _made("pad", 200, torch.int8),
    "arange of bools": lambda d: torch.arange(5, dtype=torch.bool, device=d),
    "empty of a different rank": lambda d: torch.empty(
        2, 2, device=d, memory_format=torch.channels_last
    ),
    "to a format of a different rank": lambda d: torch.ones(2, 2, device=d).to(
        memory_format=torch.channels_last
    ),
    "clone in a format of a different rank": lambda d: torch.ones(2, 2, device=d).clone(
        memory_format=torch.channels_last_3d
    ),
    "contiguous in a format of a different rank": lambda d: torch.ones(2, device=d).contiguous(
        memory_format=torch.channels_last
    ),
    "zeros_like in a format of a different rank": lambda d: torch.zeros_like(
        torch.ones(2, 2, device=d), memory_format=torch.channels_last
    ),
    "resized to a format of a different rank": lambda d: torch.ones(4, device=d).resize_(
        (2, 2), memory_format=torch.channels_last
    ),
    "resized to no format": lambda d: torch.ones(4, device=d).resize_(
        (2, 2), memory_format=torch.preserve_format
    ),
    "a volumetric module in channels_last": lambda d: torch.nn.Conv3d(1, 1, 1).to(d).to(
        memory_format=torch.channels_last
    ).weight,
    "empty in pinned memory": lambda d: torch.empty(3, device=d, pin_memory=True),
    "zeros in pinned memory": lambda d: torch.zeros(3, device=d, pin_memory=True),
    "dropout of bools": lambda d: F.dropout(torch.ones(3, dtype=torch.bool).to(d)),
}  # fmt: skip


def _error(case: Callable, device: str) -> Exception:
    with pytest.raises((RuntimeError, ValueError, IndexError)) as raised:
        case(device).cpu()
    return raised.value


@pytest.mark.parametrize("name", CASES)
def test_eagers_error(name: str) -> None:
    eager, lazy = (_error(CASES[name], device) for device in ("cpu", "lazy"))
    assert type(lazy) is type(eager), lazy
    assert str(eager).split("\n")[0] in str(lazy)


def test_pinned_memory_in_a_trace_that_repeats() -> None:
    """A call with `pin_memory` is rejected, although it equals an earlier traced call
    except for this argument, which traces don't contain."""
    for _ in range(3):
        zeros = torch.zeros(2, 3, device="lazy")
        torch_ltc.mark_step()
        del zeros
    with pytest.raises(RuntimeError) as expected:
        torch.zeros(2, 3, pin_memory=True)
    with pytest.raises(RuntimeError, match=re.escape(str(expected.value))):
        torch.zeros(2, 3, device="lazy", pin_memory=True)


def test_the_type_of_an_expanded_tensor() -> None:
    """Views are checked on meta tensors, but the message names the lazy type."""
    x, y = torch.ones(3, device="lazy"), torch.ones(2, 2, device="lazy")
    with pytest.raises(
        RuntimeError, match=r"expand\(LazyFloatType{\[2, 2\]}, size=\[\]"
    ):
        x[0] = y


def test_abs_of_a_complex_tensor_in_place() -> None:
    """As in eager, abs_ rejects complex tensors, although abs accepts them."""
    for device in ("cpu", "lazy"):
        x = torch.full((3,), 3 - 4j).to(device)
        with pytest.raises(RuntimeError, match="In-place abs is not supported"):
            x.abs_()
        assert x.tolist() == [3 - 4j] * 3


def test_batch_norm_itself_reads_within_bounds() -> None:
    """Sizes are checked, unlike in eager's kernel, which reads past the end."""
    x, weight = torch.ones(4, 3, device="lazy"), torch.ones(2, device="lazy")
    with pytest.raises(RuntimeError, match="weight should contain 3 elements"):
        torch.native_batch_norm(x, weight, None, None, None, True, 0.1, 1e-5)


@pytest.mark.parametrize("number", [True, False])
def test_subtracted_bools_after_integers(number: bool) -> None:
    """`x - True` is rejected as in eager, although its trace equals that of `x - 1`."""
    x = torch.arange(3).to("lazy")
    for _ in range(3):
        assert (x - int(number)).tolist() == [i - number for i in range(3)]
    for function in (torch.sub, torch.Tensor.sub_):
        with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
            function(x, number)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: torch.linalg.matrix_rank(x, out=out[0]),
        lambda x, out: torch.ops.aten._native_batch_norm_legit.out(
            x, None, None, x[0] * 1, x[1] * 1, True, 0.1, 1e-5,
            out=out[0], save_mean=out[1], save_invstd=out[2],
        ),
    ],
    ids=["rank", "batch norm"],
)  # fmt: skip
def test_out_on_the_cpu(call: Callable) -> None:
    x = torch.ones(2, 2, device="lazy")
    with pytest.raises(RuntimeError, match="on the same device"):
        call(x, [torch.empty(0, dtype=torch.int64) for _ in range(3)])


def test_a_rank_resizes_its_out() -> None:
    out = torch.ones(3, dtype=torch.int64, device="lazy")
    with pytest.warns(UserWarning, match="An output with one or more elements"):
        torch.linalg.matrix_rank(torch.eye(2, device="lazy"), out=out)
    assert out.shape == ()


@pytest.mark.parametrize(
    "write",
    [
        lambda x, mask: x.__setitem__(mask, 5.0),
        lambda x, mask: x.__setitem__((slice(None), mask[:3]), 5),
        lambda x, mask: x.index_put((mask,), torch.tensor(2.0).to(x.device)),
    ],
)
def test_bytes_as_a_mask_of_a_number(write: Callable) -> None:
    mask = torch.tensor([1, 0, 2, 0], dtype=torch.uint8)
    for device in ("cpu", "lazy"):
        x = torch.ones(4, 3, device=device)
        with pytest.raises(RuntimeError, match="only supports boolean masks"):
            write(x, mask.to(device))
        assert_close(x, torch.ones(4, 3))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_numbers_of_another_dtype_at_positions(dtype: torch.dtype) -> None:
    number = torch.ones((), dtype=dtype)
    for device in ("cpu", "lazy"):
        x = torch.zeros(4, 3, device=device)
        for positions in ([0], [1, -1]):
            with pytest.raises(RuntimeError, match="source and destination dtypes"):
                x[torch.tensor(positions, device=device)] = number
        x[torch.tensor([True, False, False, True], device=device)] = number  # a fill
        assert x.sum() == 6
