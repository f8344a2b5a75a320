"""Ops on quantized tensors of device `lazy` run eagerly on the CPU."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from subprocesses import run_python

pytestmark = pytest.mark.filterwarnings("ignore")

DTYPES = [torch.qint8, torch.quint8, torch.qint32]


def _tensor(device: str, dtype: torch.dtype = torch.quint8) -> torch.Tensor:
    x = torch.linspace(-1, 2, 12, device=device).reshape(3, 4)
    return torch.quantize_per_tensor(x, 0.1, 10, dtype)


def _channels(device: str) -> torch.Tensor:
    x = torch.linspace(-1, 2, 12, device=device).reshape(3, 4)
    scales = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64, device=device)
    points = torch.tensor([0, 1, 2], device=device)
    return torch.quantize_per_channel(x, scales, points, 0, torch.qint8)


def _linear(device: str) -> torch.Tensor:
    layer = torch.ao.nn.quantized.Linear(4, 2)
    weight = torch.linspace(-1, 1, 8).reshape(2, 4)
    layer.set_weight_bias(
        torch.quantize_per_tensor(weight, 0.05, 0, torch.qint8), torch.ones(2)
    )
    return layer(_tensor(device))


def _written(device: str) -> torch.Tensor:
    x = _tensor(device)
    row = x[1]
    x.copy_(torch.zeros(3, 4, device=device))
    return row


PROGRAMS = {
    "dequantize": lambda d: _tensor(d).dequantize() + 1,
    "int_repr": lambda d: _tensor(d).int_repr(),
    "parameters": lambda d: (_tensor(d).q_scale(), _tensor(d).q_zero_point()),
    "per channel": lambda d: (_channels(d).dequantize(), _channels(d).q_per_channel_axis()),
    "views": lambda d: _tensor(d).t()[1:].reshape(-1).dequantize(),
    "relu": lambda d: torch.relu(_tensor(d)).dequantize(),
    "clone": lambda d: _tensor(d).clone(),
    "comparison": lambda d: _tensor(d).dequantize() == _tensor(d).clone().dequantize(),
    "add": lambda d: torch.ops.quantized.add(_tensor(d), _tensor(d), 0.2, 3),
    "linear": _linear,
    "pooling": lambda d: torch.nn.functional.max_pool2d(_tensor(d).reshape(1, 1, 3, 4), 2),
    "a written base": _written,
    "empty": lambda d: torch._empty_affine_quantized((2, 3), scale=0.5, zero_point=1, dtype=torch.qint8, device=d).q_scale(),
    "modules": lambda d: torch.ao.nn.quantized.Quantize(0.1, 3, torch.quint8).to(d)(torch.ones(3, device=d)).dequantize(),
}  # fmt: skip


def _plain(value):
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if not isinstance(value, torch.Tensor):
        return value
    value = value.cpu()
    return (value.int_repr() if value.is_quantized else value).tolist()


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name: str) -> None:
    results = [PROGRAMS[name](device) for device in ("cpu", "lazy")]
    for result in results[1] if isinstance(results[1], tuple) else results[1:]:
        assert not isinstance(result, torch.Tensor) or result.device.type == "lazy"
    assert _plain(results[0]) == _plain(results[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_moves(dtype: torch.dtype) -> None:
    expected = _tensor("cpu", dtype)
    there = expected.to("lazy")
    assert there.is_quantized and there.dtype == dtype
    assert there.device.type == "lazy"
    assert torch.equal(there.cpu().int_repr(), expected.int_repr())
    assert "quantization_scheme" in repr(there)


def test_ops_are_in_the_fallback_log() -> None:
    torch_ltc.reset_metrics()
    _tensor("lazy").dequantize()
    logged = {row["op"] for row in torch_ltc.fallbacks()}
    assert logged >= {"aten::quantize_per_tensor", "aten::dequantize.self"}


def test_the_first_lazy_tensor() -> None:
    run_python(
        """
        import torch
        q = torch._empty_affine_quantized((2,), scale=0.5, zero_point=1, dtype=torch.qint8, device="lazy")
        q.copy_(torch.tensor([1.0, 2.0]))
        assert q.dequantize().tolist() == [1.0, 2.0], q
        """
    )
