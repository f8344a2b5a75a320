"""Images: classifiers, a variational autoencoder, a diffusion model, mixup."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset


def _images(count: int, size: int, channels: int = 1) -> TensorDataset:
    """Noisy stripes; an image's class determines their frequency."""
    generator = torch.Generator().manual_seed(4)
    classes = torch.randint(10, (count,), generator=generator)
    wave = torch.sin(torch.arange(size) * (classes.view(-1, 1) + 1) * 0.3)
    pictures = wave.view(count, 1, 1, size).expand(count, channels, size, size)
    noise = torch.randn(count, channels, size, size, generator=generator)
    return TensorDataset(pictures + 0.3 * noise, classes)


class _Digits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3), nn.Conv2d(16, 32, 3)
        self.dropout1, self.dropout2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(32 * 12 * 12, 64), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = self.dropout1(F.max_pool2d(x, 2)).flatten(1)
        return F.log_softmax(self.fc2(self.dropout2(F.relu(self.fc1(x)))), dim=1)


def digits_classifier(device: str) -> Iterator[float]:
    """A typical first script: two epochs, a smaller last batch, a test after each epoch."""
    train, test = _images(1000, 28), _images(256, 28)
    model = _Digits().to(device)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.7)
    for _ in range(2):
        model.train()
        for data, target in DataLoader(train, batch_size=64, shuffle=True):
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()
            yield loss.item()
        model.eval()
        with torch.no_grad():
            for data, target in DataLoader(test, batch_size=128):
                output = model(data.to(device)).argmax(dim=1)
                output.eq(target.to(device)).sum().item()
        scheduler.step()


class _Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(784, 200)
        self.mean, self.spread = nn.Linear(200, 20), nn.Linear(200, 20)
        self.decoder = nn.Sequential(nn.Linear(20, 200), nn.ReLU(), nn.Linear(200, 784))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = F.relu(self.encoder(x))
        mean, spread = self.mean(hidden), self.spread(hidden)
        latent = mean + torch.randn_like(spread) * (0.5 * spread).exp()
        return torch.sigmoid(self.decoder(latent)), mean, spread


def variational_autoencoder(device: str) -> Iterator[float]:
    model = _Autoencoder().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        for data, _ in DataLoader(_images(2000, 28), batch_size=128):
            data = data.view(-1, 784).sigmoid().to(device)
            optimizer.zero_grad()
            output, mean, spread = model(data)
            entropy = F.binary_cross_entropy(output, data, reduction="sum")
            divergence = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())
            loss = entropy + divergence
            loss.backward()
            optimizer.step()
            yield loss.item() / len(data)


class _Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm1, self.norm2 = nn.GroupNorm(4, channels), nn.GroupNorm(4, channels)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.first(F.silu(self.norm1(x))) + time[:, :, None, None]
        return x + self.second(F.silu(self.norm2(y)))


class _Denoiser(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, channels), nn.SiLU())
        self.enter = nn.Conv2d(1, channels, 3, padding=1)
        self.down, self.middle, self.up = (_Residual(channels) for _ in range(3))
        self.leave = nn.Conv2d(channels, 1, 3, padding=1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        time = self.time(t.view(-1, 1))
        first = self.down(self.enter(x), time)
        inner = self.middle(F.avg_pool2d(first, 2), time)
        outer = F.interpolate(inner, scale_factor=2, mode="nearest")
        return self.leave(self.up(outer + first, time))


def diffusion(device: str) -> Iterator[float]:
    """Noise prediction with an exponential moving average of the weights."""
    model = _Denoiser(32).to(device)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    levels = torch.linspace(1e-4, 0.02, 200, device=device)
    kept = torch.cumprod(1 - levels, dim=0)
    for _ in range(2):
        for data, _ in DataLoader(_images(300, 16), batch_size=16, shuffle=True):
            data = data.to(device)
            t = torch.randint(200, (len(data),), device=device)
            noise, part = torch.randn_like(data), kept[t].view(-1, 1, 1, 1)
            noisy = part.sqrt() * data + (1 - part).sqrt() * noise
            loss = F.mse_loss(model(noisy, t / 200), noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update_parameters(model)
            yield loss.item()


def mixup_and_average(device: str) -> Iterator[float]:
    """Mixup, label smoothing, accumulation over two batches, an averaged model."""
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        convolution = nn.Conv2d(before, after, 3, padding=1, bias=False)
        layers += [convolution, nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, 10)).to(device)
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
    share = torch.distributions.Beta(0.4, 0.4)
    for _ in range(3):
        batches = DataLoader(_images(640, 32, 3), batch_size=32, shuffle=True)
        for number, (data, target) in enumerate(batches):
            data, target = data.to(device), target.to(device)
            part = share.sample().item()
            order = torch.randperm(len(data)).to(device)
            output = model(part * data + (1 - part) * data[order])
            loss = part * F.cross_entropy(output, target, label_smoothing=0.1)
            loss = loss + (1 - part) * F.cross_entropy(output, target[order])
            (loss / 2).backward()
            if number % 2:
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()
                with torch.no_grad():
                    for old, new in zip(average.parameters(), model.parameters()):
                        old.lerp_(new, 0.05)
            yield loss.item()
