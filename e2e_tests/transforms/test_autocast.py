"""torch.autocast("lazy") gives the dtypes and the losses of autocast on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from comparison import assert_close
from counting import counting
from torch import nn

BF16 = torch.bfloat16


def matrix(device: str) -> torch.Tensor:
    return torch.linspace(-1, 1, 36).reshape(6, 6).to(device)


def recurrent(kind: type[nn.RNNBase], x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(0)
    layer = kind(6, 4, num_layers=2, bidirectional=True).to(x.device)
    return layer(x.view(3, 2, 6))[0]


OPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "mm": lambda x: x @ x,
    "linear": lambda x: F.linear(x, x, x[0]),
    "conv": lambda x: F.conv2d(x.view(1, 1, 6, 6), x[:1, :4].view(1, 1, 2, 2)),
    "bmm": lambda x: torch.bmm(x.view(4, 3, 3), x.view(4, 3, 3)),
    "sdpa": lambda x: F.scaled_dot_product_attention(*[x.view(1, 2, 6, 3)] * 3),
    "relu of lower": lambda x: (x @ x).relu(),
    "add of both": lambda x: x @ x + x,
    "softmax": lambda x: (x @ x).softmax(-1),
    "cat": lambda x: torch.cat([x @ x, x]),
    "cat of lower": lambda x: torch.cat([x @ x, x @ x]),
    "stack": lambda x: torch.stack([x @ x, x]),
    "loss": lambda x: F.mse_loss(x @ x, (x @ x).float() * 2),
    "cross_entropy": lambda x: F.cross_entropy(x @ x, torch.arange(6).to(x.device)),
    "layer_norm": lambda x: F.layer_norm(x @ x, (6,)),
    "prod": lambda x: (x @ x).prod(),
    "sum": lambda x: (x @ x).sum(),
    "double": lambda x: x.double() @ x.double(),
    "integers": lambda x: x.long() + 1,
    "trace": lambda x: (x @ x).trace(),
    "products of a fallback": lambda x: torch.linalg.pinv(x),
    "lstm": lambda x: recurrent(nn.LSTM, x),
    "gru": lambda x: recurrent(nn.GRU, x),
    "rnn": lambda x: recurrent(nn.RNN, x),
}


@pytest.mark.parametrize("name", OPS)
def test_dtypes(name: str) -> None:
    with torch.autocast("cpu", dtype=BF16):
        expected = OPS[name](matrix("cpu"))
    with torch.autocast("lazy", dtype=BF16):
        actual = OPS[name](matrix("lazy"))
    assert actual.dtype == expected.dtype
    assert_close(actual, expected, rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("name", ["cat", "stack", "index_copy"])
@pytest.mark.parametrize("first", [torch.float16, BF16, torch.float32, torch.float64])
@pytest.mark.parametrize("second", [torch.float16, BF16, torch.float32, torch.float64])
def test_promoted_dtypes(name: str, first: torch.dtype, second: torch.dtype) -> None:
    """A second 16-bit dtype is an error, unless a float32 operand precedes it."""

    def outcome(device: str) -> object:
        x, y = (torch.ones(2, dtype=d, device=device) for d in (first, second))
        with torch.autocast(device, dtype=BF16):
            try:
                if name == "index_copy":
                    place = torch.arange(2, device=device)
                    return torch.index_copy(x, 0, place, y).dtype
                return getattr(torch, name)([x, y]).dtype
            except RuntimeError as error:
                return str(error).split(" [aten")[0]

    assert outcome("lazy") == outcome("cpu")


def test_every_op_of_the_cpu_is_known() -> None:
    of = torch._C._dispatch_get_registrations_for_dispatch_key
    # On the CPU, an LSTM in lower precision is one op of oneDNN, so lstm isn't cast there.
    assert set(of("AutocastHPU")) == {*of("AutocastCPU"), "aten::lstm.input"}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.hidden = nn.Linear(64, 64)
        self.head = nn.Linear(64, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.norm(self.convolution(x))).flatten(1)
        return self.head(self.hidden(self.hidden(x)))  # one weight, used twice


def train(device: str, enabled: bool) -> tuple[list[float], torch.dtype]:
    torch.manual_seed(0)
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for step in range(6):
        x = torch.sin(torch.arange(8.0 * 36) + step).reshape(8, 1, 6, 6).to(device)
        target = (torch.arange(8) % 5).to(device)
        with torch.autocast(device, dtype=BF16, enabled=enabled):
            output = model(x)
            loss = F.cross_entropy(output, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    assert all(p.dtype == torch.float32 for p in model.parameters())
    return [loss.item() for loss in losses], output.dtype


def test_training_follows_the_cpu() -> None:
    expected, dtype = train("cpu", True)
    actual, lazy_dtype = train("lazy", True)
    assert dtype == lazy_dtype == BF16
    assert_close(actual, expected, rtol=5e-2, atol=2e-2)
    exact, dtype = train("lazy", False)
    assert dtype == torch.float32 and exact != actual


@pytest.mark.parametrize("bad", [None, float("inf"), float("nan")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, BF16, torch.float16])
def test_gradients_are_unscaled_with_eagers_rounding(
    dtype: torch.dtype, bad: float | None
) -> None:
    def unscale(device: str) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        gradients = [
            torch.randn(shape, generator=generator).to(dtype).to(device)
            for shape in ((5, 3), (), (0,), (7,))
        ]
        if bad is not None:
            gradients[0][1, 2] = bad
        if dtype == torch.float64:  # finite, but not in float32
            gradients[3][0] = 1e300
        found = torch.zeros(1, device=device)
        factor = torch.tensor([1 / 3], device=device)
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, factor)
        return [*gradients, found]

    expected = unscale("cpu")
    with counting() as counts:
        actual = unscale("lazy")
    assert counts.fallback_calls == counts.implicit_syncs == 0
    for a, b in zip(actual, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert_close(a, b, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("scale", [3.3, 3e38])
def test_the_scale_follows_the_cpu(scale: float) -> None:
    def scales(device: str) -> list[tuple[float, int]]:
        value = torch.tensor([scale], device=device)
        tracker = torch.zeros(1, dtype=torch.int32, device=device)
        results = []
        for found in (0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0):
            found = torch.tensor([found], device=device)
            torch._amp_update_scale_(value, tracker, found, 1.1, 0.3, 2)
            results.append((value.item(), tracker.item()))
        return results

    torch_ltc.reset_metrics()
    assert scales("lazy") == scales("cpu")
    assert torch_ltc.metrics()["fallback_calls"] == 0


def test_state() -> None:
    assert not torch.is_autocast_enabled("lazy")
    assert torch.amp.is_autocast_available("lazy")
    assert torch.get_autocast_dtype("lazy") == BF16
    assert BF16 in torch.get_device_module("lazy").get_amp_supported_dtype()
    with torch.autocast("lazy"):
        assert torch.is_autocast_enabled("lazy")
        assert not torch.is_autocast_enabled("cpu")
        assert (matrix("lazy") @ matrix("lazy")).dtype == BF16
        with torch.autocast("lazy", enabled=False):
            assert (matrix("lazy") @ matrix("lazy")).dtype == torch.float32
    assert not torch.is_autocast_enabled("lazy")
    assert (matrix("lazy") @ matrix("lazy")).dtype == torch.float32
    with torch.autocast("cpu", dtype=BF16):  # doesn't apply to device lazy
        assert (matrix("lazy") @ matrix("lazy")).dtype == torch.float32


def test_a_parameter_is_cast_once() -> None:
    weight = torch.ones(3, 3, device="lazy", requires_grad=True)
    with torch.autocast("lazy", dtype=BF16):
        before = torch_ltc.metrics()["traced_ops"]
        y = weight @ weight
        y = y @ weight
        assert torch_ltc.metrics()["traced_ops"] - before <= 3  # one cast, two mm
    y.sum().backward()
    assert weight.grad.dtype == torch.float32


def test_the_device_may_have_its_index() -> None:
    x = matrix("lazy")
    with torch.autocast("lazy:0", dtype=BF16):
        assert torch.is_autocast_enabled("lazy:0")
        assert (x @ x).dtype == BF16
    assert (x @ x).dtype == torch.float32


def test_checkpoint_keeps_autocast() -> None:
    from torch.utils.checkpoint import checkpoint

    x = matrix("lazy").requires_grad_()
    seen = []

    def block(x: torch.Tensor) -> torch.Tensor:
        y = x @ x
        seen.append(y.dtype)
        return y.relu()

    with torch.autocast("lazy", dtype=BF16):
        y = checkpoint(block, x, use_reentrant=False)
    y.sum().backward()
    assert seen == [BF16, BF16]


def test_no_recompilation() -> None:
    model = Model().to("lazy")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, t = torch.ones(8, 1, 6, 6).to("lazy"), torch.zeros(8).long().to("lazy")

    def step() -> None:
        with torch.autocast("lazy", dtype=BF16):
            F.cross_entropy(model(x), t).backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        step()
    with counting() as counts:
        for _ in range(3):
            step()
    assert counts["compilations"] == 0
    assert counts["fallback_calls"] == 0
