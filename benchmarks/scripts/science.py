"""Numerical work: LBFGS, second derivatives, graphs, Gaussian processes, integration."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class _Sequence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LSTMCell(1, 24), nn.LSTMCell(24, 24)
        self.linear = nn.Linear(24, 1)

    def forward(self, x: Tensor) -> Tensor:
        zeros = torch.zeros(len(x), 24, dtype=x.dtype, device=x.device)
        h1, c1, h2, c2, outputs = zeros, zeros, zeros, zeros, []
        for column in x.split(1, dim=1):
            h1, c1 = self.first(column, (h1, c1))
            h2, c2 = self.second(h1, (h2, c2))
            outputs.append(self.linear(h2))
        return torch.cat(outputs, dim=1)


def time_series(device: str) -> Iterator[float]:
    """float64 waves, fitted with LBFGS, which reads values in each step."""
    times = torch.arange(60, dtype=torch.float64)
    waves = torch.sin((times + torch.randint(-80, 80, (24, 1))) / 10.0).to(device)
    model = _Sequence().double().to(device)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.8, max_iter=6)
    for _ in range(4):

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = F.mse_loss(model(waves[:, :-1]), waves[:, 1:])
            loss.backward()
            return loss

        yield optimizer.step(closure).item()


def physics_informed(device: str) -> Iterator[float]:
    """Burgers' equation: second derivatives of a network, trained with Adam."""
    layers: list[nn.Module] = []
    for before, after in ((2, 32), (32, 32), (32, 32)):
        layers += [nn.Linear(before, after), nn.Tanh()]
    model = nn.Sequential(*layers, nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    places = torch.rand(256, 2) * 2 - 1
    x, t = places[:, :1].to(device), places[:, 1:].abs().to(device)
    x.requires_grad_()
    t.requires_grad_()
    for _ in range(150):
        optimizer.zero_grad()
        u = model(torch.cat([x, t], 1))
        u_t, u_x = torch.autograd.grad(u.sum(), (t, x), create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
        start = model(torch.cat([x, torch.zeros_like(t)], 1))
        loss = (u_t + u * u_x - 0.01 / math.pi * u_xx).square().mean()
        loss = loss + (start + torch.sin(math.pi * x)).square().mean()
        loss.backward()
        optimizer.step()
        yield loss.item()


class _GraphLayer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.own, self.others = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        messages = torch.zeros_like(x).index_add_(0, target, self.others(x)[source])
        return F.relu(self.own(x) + messages)


def molecules(device: str) -> Iterator[float]:
    """Batches of random graphs with different numbers of nodes and edges."""
    generator = torch.Generator().manual_seed(6)

    def pick(low: int, high: int) -> int:
        return int(torch.randint(low, high, (1,), generator=generator))

    width = 48
    enter, head = nn.Embedding(12, width).to(device), nn.Linear(width, 1).to(device)
    layers = nn.ModuleList(_GraphLayer(width) for _ in range(3)).to(device)
    parameters = [*enter.parameters(), *layers.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    for _ in range(60):
        sizes = [pick(6, 24) for _ in range(12)]
        nodes = torch.randint(12, (sum(sizes),), generator=generator)
        begin, parts, owner = 0, [], []
        for number, size in enumerate(sizes):
            count = pick(size, 3 * size)
            parts.append(begin + torch.randint(size, (2, count), generator=generator))
            owner += [number] * size
            begin += size
        edges = torch.cat(parts, 1).to(device)
        batch = torch.tensor(owner).to(device)
        x = enter(nodes.to(device))
        for layer in layers:
            x = layer(x, edges)
        pooled = torch.zeros(len(sizes), width, device=device).index_add(0, batch, x)
        wanted = torch.tensor(sizes, dtype=torch.float32).view(-1, 1).to(device) / 24
        loss = F.mse_loss(head(pooled), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def gaussian_process(device: str) -> Iterator[float]:
    """Fits a kernel's hyperparameters by the marginal likelihood, which needs a Cholesky
    decomposition."""
    x = torch.linspace(0, 1, 120).to(device)
    y = torch.sin(x * 2 * math.pi) + 0.2 * torch.randn(120).to(device)
    scale, size, noise = (
        nn.Parameter(torch.tensor(v, device=device)) for v in (-1.0, 0.0, -1.0)
    )
    optimizer = torch.optim.Adam([scale, size, noise], lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        squares = (x.unsqueeze(0) - x.unsqueeze(1)).square()
        kernel = size.exp() * (-0.5 * squares / scale.exp().square()).exp()
        kernel = kernel + noise.exp().square() * torch.eye(120, device=device)
        factor = torch.linalg.cholesky(kernel)
        solved = torch.cholesky_solve(y.unsqueeze(1), factor)
        loss = 0.5 * (y @ solved.squeeze(1)) + factor.diagonal().log().sum()
        loss.backward()
        optimizer.step()
        yield loss.item()


def matrix_factorization(device: str) -> Iterator[float]:
    """Recommendations: batches of entries of a rating table, trained with SGD."""
    users, items = nn.Embedding(800, 24).to(device), nn.Embedding(500, 24).to(device)
    optimizer = torch.optim.SGD([*users.parameters(), *items.parameters()], lr=0.5)
    for _ in range(200):
        who, what = torch.randint(800, (256,)), torch.randint(500, (256,))
        rating = ((who * what) % 5 + 1).float().to(device)
        guess = (users(who.to(device)) * items(what.to(device))).sum(1)
        loss = F.mse_loss(guess, rating)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def hamiltonian_monte_carlo(device: str) -> Iterator[float]:
    """Samples the weights of a logistic regression by leapfrog steps; accepting a sample
    reads a value."""
    x = torch.randn(128, 6)
    y = (x.sum(1) > 0).float().to(device)
    x = x.to(device)
    place = torch.zeros(6, device=device)

    def energy(weights: Tensor) -> Tensor:
        logits = x @ weights
        prior = 0.5 * weights.square().sum()
        return F.binary_cross_entropy_with_logits(logits, y, reduction="sum") + prior

    def slope(weights: Tensor) -> Tensor:
        weights = weights.detach().requires_grad_()
        return torch.autograd.grad(energy(weights), weights)[0]

    for _ in range(60):
        speed = torch.randn(6, device=device)
        new, moving = place, speed
        for _ in range(5):
            moving = moving - 0.05 * slope(new)
            new = new + 0.1 * moving
            moving = moving - 0.05 * slope(new)
        before = energy(place) + 0.5 * speed.square().sum()
        after = energy(new) + 0.5 * moving.square().sum()
        if torch.rand(()) < (before - after).exp().item():
            place = new
        yield energy(place).item()


def neural_differential_equation(device: str) -> Iterator[float]:
    """Fits a network to the derivatives of a spiral, which Runge-Kutta steps of a fixed
    size integrate."""
    field = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2)).to(device)
    optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
    times = torch.linspace(0, 4, 16)
    radius = torch.exp(-0.2 * times)
    wanted = torch.stack([radius * times.cos(), radius * times.sin()], 1).to(device)
    step = float(times[1])
    for _ in range(80):
        optimizer.zero_grad()
        place, path = wanted[:1], [wanted[:1]]
        for _ in range(15):
            k1 = field(place**3)
            k2 = field((place + 0.5 * step * k1) ** 3)
            k3 = field((place + 0.5 * step * k2) ** 3)
            k4 = field((place + step * k3) ** 3)
            place = place + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            path.append(place)
        loss = (torch.cat(path) - wanted).abs().mean()
        loss.backward()
        optimizer.step()
        yield loss.item()
