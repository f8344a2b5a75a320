"""Weights that steps don't change are cached in packed order (option cache_packed_weights)."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch.nn import functional as F


def packed_bytes() -> int:
    torch_ltc.wait_device_ops()
    return torch.lazy.memory_stats()["packed_weight_bytes"]


# Whether oneDNN packs weights. With AVX2 and later extensions, oneDNN computes on blocks of
# channels, and packs the weights for this.
PACKS = torch.backends.cpu.get_cpu_capability() != "DEFAULT"


def convolution() -> nn.Conv2d:
    """Returns a convolution whose weight oneDNN needs in blocks of 8 or 16 channels."""
    torch.manual_seed(0)
    return nn.Conv2d(32, 64, 3, bias=False)


class Inference:
    """Runs inference steps of a convolution and compares their results with eager's."""

    def __init__(self) -> None:
        torch.lazy.empty_cache()
        self.eager = convolution()
        self.lazy = convolution().to("lazy")
        self.before = packed_bytes()

    def step(self) -> int:
        """Runs a step. Returns the bytes of weights cached since `__init__`."""
        x = torch.randn(2, 32, 9, 9)
        with torch.no_grad():
            result = self.lazy(x.to("lazy"))
        assert_close(result, self.eager(x))
        return packed_bytes() - self.before


@pytest.fixture
def inference() -> Inference:
    if not PACKS:
        pytest.skip("oneDNN doesn't pack weights on this CPU")
    inference = Inference()
    for _ in range(3):
        inference.step()
    return inference


def test_from_the_second_step_on() -> None:
    inference = Inference()
    assert inference.step() == 0
    expected = inference.eager.weight.nbytes if PACKS else 0
    assert inference.step() == expected
    assert inference.step() == expected


def test_freed_with_the_program(inference: Inference) -> None:
    torch.lazy.empty_cache()
    assert packed_bytes() <= inference.before


def test_option(inference: Inference) -> None:
    with torch_ltc.config(cache_packed_weights=False):
        assert inference.step() == inference.step() == 0
    inference.step()
    assert inference.step() > 0


WRITES = {
    "in place": lambda weight: weight.mul_(2),
    "through a view": lambda weight: weight[3].zero_(),
    "data": lambda weight: weight.data.add_(1),
    "copy": lambda weight: weight.copy_(torch.ones(64, 32, 3, 3)),
    "other memory": lambda weight: setattr(weight, "data", weight.data * 3),
}


@pytest.mark.parametrize("write", WRITES)
def test_written_between_steps(inference: Inference, write: str) -> None:
    with torch.no_grad():
        for convolution in (inference.eager, inference.lazy):
            WRITES[write](convolution.weight)
    torch_ltc.mark_step()
    assert inference.step() == 0
    assert inference.step() > 0


def test_written_in_the_step(inference: Inference) -> None:
    """A step may overwrite a weight of which another program caches a packed copy."""
    for number in range(6):
        if number % 3 < 2:
            for module in (inference.eager, inference.lazy):
                with torch.no_grad():
                    module.weight.mul_(0.5)
        inference.step()


def test_loaded(inference: Inference) -> None:
    state = {"weight": torch.randn(64, 32, 3, 3)}
    inference.eager.load_state_dict(state)
    inference.lazy.load_state_dict(state)
    assert inference.step() == 0
    assert inference.step() > 0


def test_trained_weights_are_not_cached() -> None:
    torch.lazy.empty_cache()
    before = packed_bytes()
    eager, lazy = convolution(), convolution().to("lazy")
    optimizers = [torch.optim.AdamW(m.parameters(), 1e-2) for m in (eager, lazy)]
    for _ in range(4):
        x = torch.randn(2, 32, 9, 9)
        for module, optimizer in zip((eager, lazy), optimizers):
            optimizer.zero_grad()
            module(x.to(module.weight.device)).square().mean().backward()
            optimizer.step()
        torch_ltc.mark_step()
        assert packed_bytes() == before
    assert_close(lazy.weight, eager.weight, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("captured", [False, True])
def test_trained_and_frozen(captured: bool) -> None:
    """A program may use a trained and a frozen weight; the gradient flows through the
    frozen layer to its input."""
    torch.lazy.empty_cache()
    before = packed_bytes()
    results = []
    for device in ("cpu", "lazy"):
        torch.manual_seed(0)
        first, frozen = nn.Conv2d(3, 32, 3).to(device), nn.Conv2d(32, 64, 3).to(device)
        frozen.requires_grad_(False)
        optimizer = torch.optim.SGD(first.parameters(), 1e-2)

        def step(x, first=first, frozen=frozen, optimizer=optimizer):
            optimizer.zero_grad()
            loss = F.relu(frozen(first(x))).mean()
            loss.backward()
            optimizer.step()
            return loss

        run = torch_ltc.capture(step) if captured and device == "lazy" else step
        torch.manual_seed(1)
        losses = []
        for number in range(8):
            if number == 5:
                with torch.no_grad():
                    frozen.weight.neg_()
            losses.append(run(torch.randn(2, 3, 12, 12).to(device)).detach().cpu())
            torch_ltc.mark_step()
        results.append(torch.stack(losses))
    assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)
    # The forward and, on some CPUs, the backward convolution need the weight packed.
    size = frozen.weight.nbytes
    assert packed_bytes() - before in ((size, 2 * size) if PACKS else (0,))
