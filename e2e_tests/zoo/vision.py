"""Convolutional networks of published architectures, with few channels."""

from __future__ import annotations

import torch
import training.running  # noqa: F401  (extends sys.path by examples/)
from models.convolutional import ResidualBlock
from torch import nn
from torch.nn import functional as F


def _norm_relu(channels: int, relu: type[nn.Module] = nn.ReLU) -> list[nn.Module]:
    return [nn.BatchNorm2d(channels), relu(inplace=True)]


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions, the last with four times as many channels. The last
    norm's weights start near zero, as in large-batch training: otherwise a network of 50
    layers with few channels amplifies rounding errors so much that eager differs from eager
    without oneDNN."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        after = 4 * channels
        self.branch = nn.Sequential(
            nn.Conv2d(channels_in, channels, 1, bias=False),
            *_norm_relu(channels),
            nn.Conv2d(channels, channels, 3, stride, 1, bias=False),
            *_norm_relu(channels),
            nn.Conv2d(channels, after, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        nn.init.constant_(self.branch[-1].weight, 0.1)
        self.shortcut = nn.Identity()
        if stride != 1 or channels_in != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, after, 1, stride, bias=False),
                nn.BatchNorm2d(after),
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.branch(x) + self.shortcut(x))


class ResNet(nn.Module):
    """7x7 stem, maximum pooling, four stages of `depths` blocks."""

    def __init__(self, block: type[nn.Module], depths: tuple[int, ...], width: int):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            *_norm_relu(width),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks, before = [], width
        expansion = 4 if block is Bottleneck else 1
        for stage, depth in enumerate(depths):
            channels = width << stage
            for number in range(depth):
                stride = 2 if stage and not number else 1
                blocks.append(block(before, channels, stride))
                before = channels * expansion
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(before, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.pool(self.blocks(self.stem(images))).flatten(1))


def resnet18() -> nn.Module:
    return ResNet(ResidualBlock, (2, 2, 2, 2), 8)


def resnet50() -> nn.Module:
    return ResNet(Bottleneck, (3, 4, 6, 3), 4)


class InvertedResidual(nn.Module):
    """Expansion, depthwise 3x3 convolution, linear projection (MobileNet v2)."""

    def __init__(self, channels_in: int, channels: int, stride: int, factor: int):
        super().__init__()
        wide = channels_in * factor
        self.branch = nn.Sequential(
            nn.Conv2d(channels_in, wide, 1, bias=False),
            *_norm_relu(wide, nn.ReLU6),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            *_norm_relu(wide, nn.ReLU6),
            nn.Conv2d(wide, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.shortcut = stride == 1 and channels_in == channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.branch(x) if self.shortcut else self.branch(x)


class MobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False),
            *_norm_relu(8, nn.ReLU6),
            InvertedResidual(8, 8, 1, 1),
            InvertedResidual(8, 12, 2, 4),
            InvertedResidual(12, 12, 1, 4),
            InvertedResidual(12, 16, 2, 4),
            nn.Conv2d(16, 32, 1, bias=False),
            nn.BatchNorm2d(32),
            nn.Hardswish(),
        )
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(32, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(images).mean((2, 3)))


def _two_convolutions(channels_in: int, channels: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, 3, padding=1),
        nn.GroupNorm(2, channels),
        nn.SiLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.GroupNorm(2, channels),
        nn.SiLU(),
    )


class UNet(nn.Module):
    """A network that classifies each pixel: downsampling by pooling, upsampling by a
    transposed convolution and by interpolation, concatenated skip connections."""

    def __init__(self, width: int = 4, classes: int = 3) -> None:
        super().__init__()
        self.first = _two_convolutions(3, width)
        self.second = _two_convolutions(width, 2 * width)
        self.bottom = _two_convolutions(2 * width, 4 * width)
        self.up = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.back = _two_convolutions(4 * width, 2 * width)
        self.end = _two_convolutions(3 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        first = self.first(images)
        second = self.second(F.max_pool2d(first, 2))
        bottom = self.bottom(F.max_pool2d(second, 2))
        back = self.back(torch.cat([self.up(bottom), second], 1))
        upsampled = F.interpolate(back, scale_factor=2, mode="nearest")
        return self.head(self.end(torch.cat([upsampled, first], 1)))
