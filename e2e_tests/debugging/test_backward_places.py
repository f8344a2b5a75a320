"""Ops of the backward pass have the line and module of their forward op."""

from __future__ import annotations

import inspect

import torch
import torch_ltc
from torch import nn


class Root(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sqrt()


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
        self.root = Root()
        self.decoder = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.root(self.encoder(x).square())).sigmoid()


def line_of(owner: type, text: str) -> int:
    lines, first = inspect.getsourcelines(owner)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_lines_and_modules() -> None:
    with torch_ltc.config(source_info=True):
        model = Model().to("lazy")
        x = torch.ones(5, 3, device="lazy")
        torch_ltc.mark_step()
        model(x).square().sum().backward()
        text = torch_ltc.debug.dump(model.encoder[0].weight.grad, stage="ir")
    root = f"test_backward_places.py:{line_of(Root, 'x.sqrt')} root"
    assert sum(root in line for line in text.splitlines()) > 1  # sqrt and its gradient
    place = f"test_backward_places.py:{line_of(Model, 'return self.decoder')}"
    for op, module in (("tanh_backward", " encoder.1"), ("sigmoid_backward", "")):
        (line,) = (line for line in text.splitlines() if f"{op}(" in line)
        assert line.rstrip().endswith(place + module), line
