"""Fake tensors of device `lazy` have eager's metadata, and lazy tensors can be compiled
by torch.compile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

pytestmark = pytest.mark.filterwarnings("ignore")

TENSORS = {
    "plain": lambda d: torch.ones(3, 4, device=d),
    "transposed": lambda d: torch.ones(3, 4, device=d).t(),
    "part": lambda d: torch.ones(5, 4, device=d)[1:4, ::2],
    "expanded": lambda d: torch.ones(3, 1, device=d).expand(3, 4),
    "scalar": lambda d: torch.ones((), device=d, dtype=torch.int64),
    "complex": lambda d: torch.ones(2, 2, dtype=torch.complex64, device=d),
    "parameter": lambda d: nn.Linear(3, 4).to(d).weight,
    "leaf": lambda d: torch.ones(2, device=d, requires_grad=True),
}


@pytest.mark.parametrize("make", TENSORS.values(), ids=TENSORS)
def test_fake_of_a_tensor(make) -> None:
    fake, cpu = (FakeTensorMode().from_tensor(make(d)) for d in ("lazy", "cpu"))
    assert fake.device == torch.device("lazy", 0)
    for name in ("shape", "dtype", "requires_grad", "is_leaf"):
        assert getattr(fake, name) == getattr(cpu, name), name
    assert fake.stride() == cpu.stride()
    assert fake.storage_offset() == cpu.storage_offset()
    assert fake._is_view() == cpu._is_view()
    assert isinstance(fake, nn.Parameter) == isinstance(cpu, nn.Parameter)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_make_fx(mode: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return (x @ x.t()).relu().sum(0)

    x = torch.randn(3, 4)
    traced = make_fx(program, tracing_mode=mode)(x.to("lazy"))
    assert_close(traced(x.to("lazy")), program(x))


def users_backend(graph: torch.fx.GraphModule, _) -> object:
    return graph.forward


BACKENDS = [
    "torch_ltc",
    "eager",
    "inductor",
    "aot_eager",
    users_backend,
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled_training(backend) -> None:
    """A training step is compiled without a graph break, and has eager's results."""
    losses = {}
    for device in ("cpu", "lazy"):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 1)
        ).to(device)  # fmt: skip
        run = (
            torch.compile(model, backend=backend, fullgraph=True)
            if device == "lazy"
            else model
        )
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        losses[device] = []
        for rows in (5, 5, 7):
            optimizer.zero_grad()
            loss = run(torch.randn(rows, 3).to(device)).square().mean()
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    torch._dynamo.reset()
    assert_close(losses["lazy"], losses["cpu"], rtol=1e-4, atol=1e-5)


class Written(nn.Module):
    """Writes a buffer and a part of an activation."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.register_buffer("calls", torch.zeros(4))
        self.register_buffer("out", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        y = self.norm(self.linear(x)).relu_() * 1
        y[:, 0] = 0
        torch.sum(y.detach(), 0, out=self.out)
        return y.masked_fill_(y > 1, 1).mul_(2) + self.calls


def traced_by_aot(module: nn.Module, x: torch.Tensor) -> object:
    from functorch.compile import aot_module, nop

    return aot_module(module, fw_compiler=nop)


def exported(module: nn.Module, x: torch.Tensor) -> object:
    sizes = ({0: torch.export.Dim("rows")},)
    program = torch.export.export(module, (x,), dynamic_shapes=sizes)
    return program.run_decompositions().module()


@pytest.mark.parametrize("trace", [traced_by_aot, exported])
def test_functionalized_writes(trace) -> None:
    """AOTAutograd functionalizes writes to fake tensors with functional wrappers of its
    own."""
    results = {}
    for device in ("cpu", "lazy"):
        torch.manual_seed(0)
        module = Written().to(device)
        x = torch.randn(3, 4).to(device)
        run = trace(module, x)
        for _ in range(2):
            y = run(x)
        results[device] = y.detach().cpu()
    assert_close(results["lazy"], results["cpu"])


def test_checks_of_exported_programs_need_no_values() -> None:
    """A program of torch.export checks the metadata of tensors; this cuts no graph."""

    class Converted(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(torch.float64) + 1

    x = torch.ones(3, device="lazy")
    run = torch.export.export(Converted(), (x,)).module()
    run(x)
    torch_ltc.mark_step()
    with torch_ltc.debug.no_fallback(), torch_ltc.debug.no_sync():
        y = run(x)
    assert y.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="dtype mismatch"):
        torch.ops.aten._assert_tensor_metadata(x, dtype=torch.float64)


def _weight(x: torch.Tensor, *sizes: int) -> torch.Tensor:
    return torch.zeros(sizes, device=x.device)


CHANNELS_LAST = {
    "conv2d": lambda x: F.conv2d(x, _weight(x, 4, 4, 3, 3)),
    "pointwise conv2d": lambda x: F.conv2d(x, _weight(x, 4, 4, 1, 1)),
    "grouped conv2d": lambda x: F.conv2d(x, _weight(x, 4, 2, 3, 3), groups=2),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, _weight(x, 4, 4, 3, 3)),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
}


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """The CPU's backend of a convolution depends on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("name", CHANNELS_LAST)
def test_strides_of_images(name: str, layout: torch.memory_format, threads) -> None:
    strides = []
    for mode in (FakeTensorMode(), nullcontext()):
        with mode:
            x = torch.zeros(2, 4, 8, 8, device="lazy").to(memory_format=layout)
            y = CHANNELS_LAST[name](x.requires_grad_())
            (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
        strides.append((y.stride(), gradient.stride()))
    assert strides[0] == strides[1]


def test_compiled_channels_last() -> None:
    conv = nn.Conv2d(3, 4, 3).to("lazy", memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).to("lazy", memory_format=torch.channels_last)

    def program(x: torch.Tensor) -> torch.Tensor:
        return conv(x).permute(0, 2, 3, 1).view(-1, 4)

    assert_close(torch.compile(program)(x), program(x))
