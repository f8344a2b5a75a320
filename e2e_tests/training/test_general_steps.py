"""Training steps at random batch sizes and lengths have one general graph, which yields
exactly the traced step at sizes that it wasn't made from."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

import general_graphs
import pytest
import torch
import torch_ltc
from torch import nn
from torch.nn import functional as F
from torch_ltc._backend import bindings

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

from models import data
from models.convolutional import LeNet, ResNet
from models.perceptron import Perceptron
from models.recurrent import RowReader
from models.tasks import classify, guess_masked, guess_next
from models.transformers import Decoder, Encoder

Batch = tuple[torch.Tensor, ...]
STEPS = 8
#: How many corrections of the general graph by later steps are accepted: the first two
#: steps may suggest relations between sizes that held by accident.
MOST_REFINED = 2


def _images(draw: random.Random) -> Batch:
    return data.digit_batch(draw.randrange(9), draw.randint(2, 12), 8)


def _text(draw: random.Random) -> Batch:
    return data.masked_text_batch(
        draw.randrange(9), draw.randint(2, 9), draw.randint(5, 24)
    )


def _next(draw: random.Random) -> Batch:
    return (
        data.text_batch(draw.randrange(9), draw.randint(2, 9), draw.randint(6, 24)),
    )


class GraphNet(nn.Module):
    """Messages along edges, summed by `index_add_`."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Linear(6, 6)
        self.update = nn.Linear(12, 6)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        messages = F.relu(self.message(nodes[source]))
        summed = torch.zeros_like(nodes).index_add_(0, target, messages)
        return self.update(torch.cat([nodes, summed], 1))


def _graph(draw: random.Random) -> Batch:
    nodes, edges = draw.randint(4, 20), draw.randint(6, 40)
    generator = torch.Generator().manual_seed(draw.randrange(99))
    ends = torch.randint(nodes, (2, edges), generator=generator)
    return torch.randn(nodes, 6, generator=generator), ends


def _squares(model: nn.Module, batch: Batch) -> torch.Tensor:
    return model(*batch).square().mean()


class Pyramid(nn.Module):
    """Convolutions with strides, pools, and a head for all image sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 6, 3, stride=2)
        self.head = nn.Linear(6, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.first(images)), 2)
        x = F.relu(self.second(x))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def _sized_images(draw: random.Random) -> Batch:
    images, classes = data.digit_batch(0, draw.randint(2, 6))
    sides = (draw.randint(12, 33), draw.randint(12, 33))
    return F.interpolate(images, size=sides), classes


def _rows(draw: random.Random) -> Batch:
    images, classes = _images(draw)
    return F.interpolate(images, size=(draw.randint(4, 14), 8)), classes


Loss = Callable[[nn.Module, Batch], torch.Tensor]
STEPS_OF = {
    "perceptron": (Perceptron, _images, classify),
    "lenet": (LeNet, _images, classify),
    "resnet": (ResNet, _images, classify),
    "images of any size": (Pyramid, _sized_images, classify),
    "encoder": (lambda: Encoder(fused=False), _text, guess_masked),
    "encoder, fused": (lambda: Encoder(fused=True), _text, guess_masked),
    "decoder": (lambda: Decoder(fused=False), _next, guess_next),
    "decoder, fused": (lambda: Decoder(fused=True), _next, guess_next),
    "lstm": (lambda: RowReader(nn.LSTM), _images, classify),
    "lstm of any length": (lambda: RowReader(nn.LSTM), _rows, classify),
    "graph network": (GraphNet, _graph, _squares),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", STEPS_OF)
def test_training(name: str, seed: int) -> None:
    build, draw, loss_of = STEPS_OF[name]
    sizes = random.Random(f"{name} {seed}")
    torch.manual_seed(seed)
    model = build().to("lazy")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(batch: Batch) -> list[torch.Tensor]:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        states = [t for s in optimizer.state.values() for t in s.values()]
        return [loss, *model.parameters(), *states]

    programs = []
    with torch_ltc.config(auto_step=False, varying_numbers="off"):
        for number in range(STEPS + 2):
            batch = [tensor.to("lazy") for tensor in draw(sizes)]
            torch_ltc.mark_step()
            program = general_graphs.trace(lambda batch=batch: step(batch))
            assert program is not None
            if number >= 2:  # the first steps also initialize the optimizer's state
                programs.append(program)
    torch_ltc.mark_step()
    if "of any length" not in name:  # one program per length: its loop is unrolled
        skeletons = {bindings().skeleton(program) for program in programs}
        assert len(skeletons) == 1
    outcome = general_graphs.check(programs)
    assert not outcome.rejected
    assert outcome.refined <= MOST_REFINED
