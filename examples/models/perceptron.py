"""A multilayer perceptron for square grayscale images."""

from __future__ import annotations

import torch
from torch import nn


class Perceptron(nn.Module):
    def __init__(self, side: int = 8, hidden: int = 32, dropout: float = 0.1) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(side * side, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
            nn.Linear(hidden, 10),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images)
