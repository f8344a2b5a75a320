"""LeNet and a small residual network for square grayscale images."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class LeNet(nn.Module):
    """Two convolutions with max and average pooling, three linear layers."""

    def __init__(self, side: int = 8, channels: int = 6, dropout: float = 0.2) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 16, 3, padding=1),
            nn.ReLU(),
            nn.AvgPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(16 * (side // 4) ** 2, 120),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, 10),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(images))


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(
            channels_in, channels, 3, stride=stride, padding=1, bias=False
        )
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)
        self.shortcut = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride=stride, bias=False),
                nn.BatchNorm2d(channels),
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = F.relu(self.first_norm(self.first(x)))
        hidden = self.second_norm(self.second(hidden))
        return F.relu(hidden + self.shortcut(x))


class ResNet(nn.Module):
    """A stem, and a residual block with `channels * factor` channels for each factor of
    `widths`."""

    def __init__(
        self, channels: int = 8, widths: tuple[int, ...] = (1, 2), dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=1, padding=1),
        )
        blocks = []
        before = channels
        for number, factor in enumerate(widths):
            after = channels * factor
            blocks.append(ResidualBlock(before, after, 1 if number == 0 else 2))
            before = after
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(before, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.pool(self.blocks(self.stem(images))).flatten(1)
        return self.classifier(self.dropout(features))


class DigitsNet(nn.Module):
    """The model of the digits example: two convolutions with batch norm."""

    def __init__(self, channels: int = 24, dropout: float = 0.25) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(2 * channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(2 * channels * 4, 64),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(64, 10),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(images))
