"""A loop whose sizes vary compiles a few programs, one of them for all sizes, and has
eager's losses."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from comparison import assert_close
from torch import nn

STEPS = 12
#: The maximum number of programs that a loop compiles: the first step's (without optimizer
#: state), the second step's, one for all sizes, and another one if two sizes of the first
#: traces are equal by accident.
MOST_COMPILATIONS = 4

Batch = Callable[[random.Random], tuple[torch.Tensor, ...]]


def perceptron() -> tuple[nn.Module, Batch]:
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))

    def batch(draw: random.Random) -> tuple[torch.Tensor, ...]:
        count = draw.randint(2, 90)
        return torch.randn(count, 20), torch.randint(0, 5, (count,))

    return model, batch


def convolutions() -> tuple[nn.Module, Batch]:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.GroupNorm(4, 16),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 4),
    )

    def batch(draw: random.Random) -> tuple[torch.Tensor, ...]:
        count, height = draw.randint(3, 12), draw.randint(10, 33)
        images = torch.randn(count, 3, height, height + 3)
        return images, torch.randint(0, 4, (count,))

    return model, batch


class _Text(nn.Module):
    """Computes scores of the next token from token indices."""

    def __init__(self, body: nn.Module, width: int) -> None:
        super().__init__()
        self.embedding, self.body = nn.Embedding(50, width), body
        self.head = nn.Linear(width, 50)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.body(self.embedding(tokens))
        hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        return self.head(hidden).flatten(0, 1)


def _tokens(draw: random.Random) -> tuple[torch.Tensor, ...]:
    shape = (draw.randint(2, 6), draw.randint(9, 40))
    return torch.randint(0, 50, shape), torch.randint(0, 50, shape).flatten()


def encoder() -> tuple[nn.Module, Batch]:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    return _Text(nn.TransformerEncoder(layer, 2), 32), _tokens


def recurrence() -> tuple[nn.Module, Batch]:
    return _Text(nn.LSTM(16, 16, batch_first=True), 16), _tokens


class _Graphs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        hidden = self.first(nodes).relu()
        received = torch.zeros_like(hidden).index_add_(0, edges[1], hidden[edges[0]])
        return self.second(hidden + received)


def graphs() -> tuple[nn.Module, Batch]:
    def batch(draw: random.Random) -> tuple[torch.Tensor, ...]:
        count, edges = draw.randint(5, 30), draw.randint(31, 80)
        ends = torch.randint(0, count, (2, edges))
        return torch.randn(count, 8), ends, torch.randint(0, 4, (count,))

    return _Graphs(), batch


def _train(make: Callable[[], tuple[nn.Module, Batch]], device: str) -> list[float]:
    torch.manual_seed(0)
    draw = random.Random(1)
    model, batch = make()
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(STEPS):
        *inputs, target = (tensor.to(device) for tensor in batch(draw))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(*inputs), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.fixture(autouse=True)
def _compiled() -> Iterator[None]:
    torch.lazy.empty_cache()
    with torch_ltc.config(tier="compile", cache=False):
        torch_ltc.reset_metrics()
        yield


MODELS = [perceptron, convolutions, encoder, recurrence, graphs]


@pytest.mark.parametrize("make", MODELS)
def test_training_compiles_few_programs(make) -> None:
    losses = _train(make, "lazy")
    metrics = torch_ltc.metrics()
    assert metrics["compilations"] <= MOST_COMPILATIONS
    assert metrics["programs_bound"] >= STEPS - MOST_COMPILATIONS
    assert_close(losses, _train(make, "cpu"), rtol=1e-4, atol=1e-4)


def test_option_off_compiles_each_size() -> None:
    with torch_ltc.config(varying_sizes="off"):
        _train(perceptron, "lazy")
    assert torch_ltc.metrics()["compilations"] >= STEPS - 1


def test_a_bound_program_is_no_recompilation() -> None:
    def step(n: int) -> torch.Tensor:
        return (torch.ones(n, 3, device="lazy") * 2).sum(0).cpu()

    for n in (4, 6, 9):
        step(n)
    with torch_ltc.debug.no_recompile():
        assert step(17).tolist() == [34.0] * 3


def test_rows_of_a_data_set_on_the_device() -> None:
    """The data set's number of rows is a constant size of a parameter; the length of a
    batch varies."""
    data, targets = torch.randn(3000, 6), torch.randn(3000)
    model = nn.Linear(6, 1)

    def losses(device: str) -> list[float]:
        x, y = data.to(device), targets.to(device)
        copy = nn.Linear(6, 1).to(device)
        copy.load_state_dict(model.state_dict())
        optimizer = torch.optim.SGD(copy.parameters(), lr=0.1)
        result = []
        for i in range(STEPS):
            begin, end = 97 * i, 97 * i + 11 + (31 * i) % 50
            optimizer.zero_grad()
            loss = F.mse_loss(copy(x[begin:end])[:, 0], y[begin:end])
            loss.backward()
            optimizer.step()
            result.append(loss.item())
        return result

    assert_close(losses("lazy"), losses("cpu"), rtol=1e-4, atol=1e-5)
    assert torch_ltc.metrics()["compilations"] <= MOST_COMPILATIONS


def test_tier_auto_generalizes_only_what_is_worth_it() -> None:
    """No general graph is made in a short loop, so the compile log lists no sizes."""
    with torch_ltc.config(tier="auto"):
        _train(perceptron, "lazy")
    assert not any(row["sizes"] for row in torch_ltc.compile_log())
    assert torch_ltc.metrics()["compilations"] == 0


def test_tier_auto_generalizes_a_loop_over_known_sizes() -> None:
    """With bucketed lengths, no program is new after the first pass, and no single program
    is worth a compilation; one general program is compiled for all lengths."""
    weight = torch.randn(256, 256)
    inputs = [torch.randn(32 * n, 256) for n in range(1, 9)]
    expected = [(x @ weight).tanh().sum() for x in inputs]
    lazy, weight = [x.to("lazy") for x in inputs], weight.to("lazy")
    with torch_ltc.config(tier="auto"):
        for _ in range(4000):
            results = [(x @ weight).tanh().sum().item() for x in lazy]
            if torch_ltc.metrics()["programs_bound"] == len(inputs):
                break
    assert_close(torch.tensor(results), torch.stack(expected), rtol=1e-4, atol=1e-3)
    metrics = torch_ltc.metrics()
    assert metrics["programs_bound"] == len(inputs), metrics
    assert metrics["compilations"] == 1
    assert torch_ltc.compile_log()[-1]["sizes"]


def _agree(function: Callable[..., torch.Tensor], *shapes: tuple[int, ...]) -> None:
    for shape in shapes:
        x = torch.randn(shape)
        assert_close(function(x.to("lazy")), function(x))


def test_bounds_that_cut_other_sizes() -> None:
    """Results are right if constant bounds are clamped at some sizes, but not at the
    stand-ins."""
    _agree(lambda x: x[:50].sum(0), (70, 3), (90, 3), (20, 3), (50, 3), (51, 3))
    _agree(lambda x: x[:, 40:].sum(), (2, 90), (2, 70), (2, 41), (2, 40), (2, 30))
    _agree(lambda x: x.diagonal(7).sum(), (20, 30), (25, 40), (40, 20), (9, 60))


def test_numbers_that_follow_counts() -> None:
    """Factors such as 1 / n and 1 / (n - 1) are right at each size, although float32 can't
    distinguish them at large stand-ins."""
    shapes = [(4, 5, 6), (6, 7, 8), (3, 4, 5), (2, 3, 2), (9, 2, 4)]
    _agree(lambda x: x.var(), *shapes)
    _agree(lambda x: x.var(0).sum() + x.mean(), *shapes)
    _agree(lambda x: F.mse_loss(x, x.flip(0)), *shapes)


def test_steps_for_each_doubling_of_a_size() -> None:
    def find(x: torch.Tensor) -> torch.Tensor:
        return torch.searchsorted(x.flatten().sort()[0], x)

    _agree(find, (4, 5), (6, 7), (2, 3), (30, 41), (1, 200))


def test_compile_log_names_sizes() -> None:
    for count in (5, 9, 13):
        (torch.randn(count, 4, device="lazy") * 2).sum().item()
    origins = [entry["origin"] for entry in torch_ltc.compile_log()]
    assert origins.count("bound") >= 1
    sizes = torch_ltc.compile_log()[-1]["sizes"]
    assert sizes and sizes[0].startswith("s0 = size 0 of parameter")


@pytest.mark.parametrize("dynamic", [True, None])
def test_torch_compile_of_any_size(dynamic: bool | None) -> None:
    """Six batch sizes need at most two compilations; most calls run bound executables."""
    model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 2))
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="torch_ltc", dynamic=dynamic)
    for count in (5, 9, 13, 40, 3, 77):
        x = torch.randn(count, 6)
        gradients = []
        for function in (compiled, model):
            function(x).square().mean().backward()
            gradients.append([p.grad for p in model.parameters()])
            model.zero_grad()
        assert_close(*gradients, rtol=1e-4, atol=1e-5)
    metrics = torch_ltc.metrics()
    assert metrics["compilations"] <= 2 and metrics["programs_bound"] >= 8
