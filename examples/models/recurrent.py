"""A classifier whose LSTM or GRU reads an image row by row."""

from __future__ import annotations

import torch
from torch import nn


class RowReader(nn.Module):
    """Two recurrent layers with dropout between them. `cell`: nn.LSTM or nn.GRU."""

    def __init__(
        self, cell: type[nn.RNNBase], side: int = 8, hidden: int = 24, dropout=0.1
    ) -> None:
        super().__init__()
        self.reader = cell(
            side, hidden, num_layers=2, batch_first=True, dropout=dropout
        )
        self.classifier = nn.Linear(hidden, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        states, _ = self.reader(images.squeeze(1))
        return self.classifier(states[:, -1])
