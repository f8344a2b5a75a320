"""Products of groups of rows (`grouped_mm`) are traced, with eager's values and errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting
from torch.nn import functional as F

#: For each form, the sizes of both matrices, and whether they have groups.
FORMS: dict[str, tuple[tuple[int, ...], tuple[int, ...], bool]] = {
    "groups of rows": ((24, 16), (3, 16, 8), True),
    "groups of columns": ((3, 5, 16), (16, 24), True),
    "groups of summands": ((8, 24), (24, 16), True),
    "batches": ((3, 5, 16), (3, 16, 8), False),
}
ENDS = {"all rows": [3, 8, 24], "empty groups": [0, 8, 24], "one group": [0, 0, 24]}


def _same_on_both(function: Callable[..., list[torch.Tensor]], *operands) -> None:
    results = {
        device: function(*(operand.to(device) for operand in operands))
        for device in ("cpu", "lazy")
    }
    for lazy, cpu in zip(results["lazy"], results["cpu"], strict=True):
        assert (lazy.dtype, lazy.stride()) == (cpu.dtype, cpu.stride())
        assert_close(lazy, cpu, rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("form", FORMS)
def test_same_values_as_eager(form: str, ends: str, dtype, tier: str) -> None:
    torch.manual_seed(0)
    left, right, has_groups = FORMS[form]

    def products(a, b, offs) -> list[torch.Tensor]:
        return [F.grouped_mm(a, b, offs=offs if has_groups else None)]

    offs = torch.tensor(ENDS[ends], dtype=torch.int32)
    a, b = torch.randn(left, dtype=dtype), torch.randn(right, dtype=dtype)
    with counting() as counts, torch_ltc.config(tier=tier):
        _same_on_both(products, a, b, offs)
    assert counts.fallback_calls == 0
    assert counts.implicit_syncs == 1  # the comparison's read


@pytest.mark.parametrize("tier", ["compile", "interpret"])
def test_a_mixture_of_experts_is_one_program(tier: str) -> None:
    torch.manual_seed(0)
    data = torch.randn(10, 7, 8)  # 7 rows: no multiple of 16 bytes in the gradient

    def train(up, down, gate, data) -> list[torch.Tensor]:
        parameters = [p.clone().requires_grad_() for p in (up, down, gate)]
        up, down, gate = parameters
        optimizer = torch.optim.SGD(parameters, 0.1)
        for x in data:
            weights, experts = (x @ gate).softmax(1).max(1)
            experts, order = experts.sort(stable=True)
            counts = torch.histc(experts.float(), 4, 0, 3)
            offs = counts.cumsum(0, dtype=torch.int32)
            hidden = F.grouped_mm(x[order], up.transpose(1, 2), offs=offs).relu()
            result = F.grouped_mm(hidden, down, offs=offs) * weights[order, None]
            (result - x[order]).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        return [p.detach() for p in parameters]

    sizes = ((4, 16, 8), (4, 16, 8), (8, 4))
    with torch_ltc.config(tier=tier), counting() as counts:
        _same_on_both(train, *(torch.randn(s) * 0.3 for s in sizes), data)
    assert counts.fallback_calls == 0
    assert counts.steps == len(data)
    assert counts.implicit_syncs <= 3  # the comparison's reads


REJECTED: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]] = {
    "rows": lambda a, b, o: F.grouped_mm(a[:, :15].contiguous(), b[:, :15], offs=o),
    "columns": lambda a, b, o: F.grouped_mm(a, b[..., :6].contiguous(), offs=o),
    "expanded": lambda a, b, o: F.grouped_mm(a[:1, :1].expand(24, 16), b, offs=o),
    "summands": lambda a, b, o: F.grouped_mm(a[:, :8], b, offs=o),
    "no groups": lambda a, b, o: F.grouped_mm(a, b),
    "number of groups": lambda a, b, o: F.grouped_mm(a, b, offs=o[:2]),
    "dtype of groups": lambda a, b, o: F.grouped_mm(a, b, offs=o.long()),
    "dtypes": lambda a, b, o: F.grouped_mm(a, b.bfloat16(), offs=o),
    "doubles": lambda a, b, o: F.grouped_mm(a.double(), b.double(), offs=o),
    "bias": lambda a, b, o: F.grouped_mm(a, b, offs=o, bias=b[:, 0]),
    "result": lambda a, b, o: F.grouped_mm(a, b, offs=o, out_dtype=torch.bfloat16),
    "gradient": lambda a, b, o: (
        F.grouped_mm(a.requires_grad_(), b, offs=o).sum().backward()
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_same_errors_as_eager(name: str) -> None:
    messages = {}
    for device in ("cpu", "lazy"):
        a, b = torch.ones(24, 16, device=device), torch.ones(3, 16, 8, device=device)
        offs = torch.tensor([3, 8, 24], dtype=torch.int32, device=device)
        with pytest.raises(RuntimeError) as error:
            REJECTED[name](a, b, offs)
        messages[device] = str(error.value)
    assert messages["lazy"].startswith(messages["cpu"])


def test_results_with_padded_rows() -> None:
    """Eager pads rows of 6 floats to 32 bytes."""
    b = torch.randn(3, 6, 16)
    ends = torch.tensor([3, 8, 24], dtype=torch.int32)

    def products(a, b, offs) -> list[torch.Tensor]:
        return [F.grouped_mm(a, b.transpose(1, 2), offs=offs)]

    _same_on_both(products, torch.randn(24, 16), b, ends)
