"""Ops on dtypes that programs don't support run by fallback, with eager's results."""

from __future__ import annotations

import pytest
import torch
import torch_ltc

FLOAT8 = [
    torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz, torch.float8_e8m0fnu,
]  # fmt: skip
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex32, torch.complex64, torch.complex128]

#: Functions of a device and a dtype.
PROGRAMS = {
    "cast": lambda d, t: torch.tensor([0.5, 1.0, 2.0, 4.0], device=d).to(t),
    "back": lambda d, t: _numbers(d, t).to(torch.float32),
    "full": lambda d, t: torch.full((2, 2), 2, dtype=t, device=d),
    "zeros": lambda d, t: torch.zeros(2, dtype=t, device=d),
    "ones_like": lambda d, t: torch.ones_like(_numbers(d, t)),
    "views": lambda d, t: _numbers(d, t).reshape(2, 2).t()[1:],
    "contiguous": lambda d, t: _numbers(d, t).reshape(2, 2).t().contiguous(),
    "cat": lambda d, t: torch.cat([_numbers(d, t), _numbers(d, t)[:1]]),
    "clone": lambda d, t: _numbers(d, t).clone(),
    "a written view": lambda d, t: _written(d, t),
    "a written expanded view": lambda d, t: _written_expanded(d, t),
    "fill_": lambda d, t: _numbers(d, t).fill_(1),
    "copy_": lambda d, t: torch.zeros(4, dtype=t, device=d).copy_(_numbers(d, t)),
    "other dtype's bits": lambda d, t: _numbers(d, t).view(torch.uint8),
    "add": lambda d, t: _numbers(d, t) + _numbers(d, t),
    "mul": lambda d, t: _numbers(d, t) * 2,
    "eq": lambda d, t: _numbers(d, t) == _numbers(d, t),
    "sum": lambda d, t: _numbers(d, t).sum(),
    "mm": lambda d, t: _numbers(d, t).reshape(2, 2) @ _numbers(d, t).reshape(2, 2),
    "exp": lambda d, t: _numbers(d, t).exp(),
    "index": lambda d, t: _numbers(d, t)[torch.tensor([2, 0], device=d)],
    "where": lambda d, t: torch.where(torch.tensor([True, False] * 2, device=d), _numbers(d, t), _numbers(d, t).flip(0)),
    "sort": lambda d, t: _numbers(d, t).sort(descending=True)[0],
    "item": lambda d, t: _numbers(d, t)[1].item(),
    "tolist": lambda d, t: _numbers(d, t).tolist(),
}  # fmt: skip


def _numbers(device: str, dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor([1.0, 2.0, 0.5, 4.0]).to(dtype).to(device)


def _written(device: str, dtype: torch.dtype) -> torch.Tensor:
    x = _numbers(device, dtype)
    x[1:3].copy_(x[2:].clone())
    return x


def _written_expanded(device: str, dtype: torch.dtype) -> torch.Tensor:
    x = _numbers(device, dtype)
    x.expand(2, 4)[1].copy_(_numbers(device, dtype).flip(0))
    return x


def _outcome(name: str, device: str, dtype: torch.dtype):
    try:
        result = PROGRAMS[name](device, dtype)
    except Exception as error:
        return type(error)
    if not isinstance(result, torch.Tensor):
        return result
    wide = torch.complex128 if result.is_complex() else torch.float64
    return result.dtype, tuple(result.shape), result.cpu().to(wide).tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "dtype", [*FLOAT8, *UNSIGNED, *COMPLEX, torch.float16], ids=str
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name: str, dtype: torch.dtype) -> None:
    assert _outcome(name, "lazy", dtype) == _outcome(name, "cpu", dtype)


def test_scaled_product() -> None:
    a = torch.ones(16, 32).to(torch.float8_e4m3fn)
    b = torch.full((16, 32), 2.0).to(torch.float8_e4m3fn).t()
    one = torch.ones(())
    results = [
        torch._scaled_mm(
            a.to(d), b.to(d), one.to(d), one.to(d), out_dtype=torch.float32
        ).cpu()
        for d in ("cpu", "lazy")
    ]
    assert torch.equal(*results)


def test_the_dtype_is_the_reason() -> None:
    x = torch.ones(2, device="lazy").to(torch.float8_e5m2)
    torch_ltc.reset_metrics()
    x.clone().to(torch.float32).sum().item()
    assert any("Float8_e5m2" in row["reason"] for row in torch_ltc.fallbacks())
