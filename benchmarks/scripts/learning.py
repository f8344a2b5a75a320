"""Training setups: two networks, pairs, teachers, inner loops, ensembles, averages."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn import functional as F
from torch.optim import swa_utils
from torch.utils.data import DataLoader, TensorDataset


def _points(count: int, width: int, classes: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(11)
    centers = torch.randn(classes, width, generator=generator)
    kinds = torch.randint(classes, (count,), generator=generator)
    noise = torch.randn(count, width, generator=generator)
    return TensorDataset(centers[kinds] + 0.5 * noise, kinds)


def _network(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def adversarial(device: str) -> Iterator[float]:
    """A GAN: two optimizers, and two losses that are both read in each step."""
    generator = nn.Sequential(_network(16, 64, 64), nn.Tanh()).to(device)
    critic = _network(64, 64, 1).to(device)
    first = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    second = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    real_label = torch.ones(64, 1, device=device)
    for real, _ in DataLoader(_points(6400, 64, 3), 64, drop_last=True):
        real = real.to(device)
        second.zero_grad()
        fake = generator(torch.randn(64, 16, device=device))
        wrong = F.binary_cross_entropy_with_logits(
            critic(fake.detach()), 1 - real_label
        )
        loss = wrong + F.binary_cross_entropy_with_logits(critic(real), real_label)
        loss.backward()
        second.step()
        first.zero_grad()
        deceived = F.binary_cross_entropy_with_logits(critic(fake), real_label)
        deceived.backward()
        first.step()
        yield loss.item() + deceived.item()


def contrastive(device: str) -> Iterator[float]:
    """SimCLR's loss over two noisy copies of each batch; a cosine schedule."""
    encoder = _network(32, 128, 64).to(device)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    other = torch.arange(128, device=device).roll(64)
    itself = torch.eye(128, dtype=torch.bool, device=device)
    for _ in range(2):
        for x, _ in DataLoader(_points(3200, 32, 8), 64, shuffle=True):
            x = x.to(device)
            pairs = torch.cat([x + 0.1 * torch.randn_like(x) for _ in range(2)])
            z = F.normalize(encoder(pairs), dim=1)
            similar = (z @ z.t() / 0.5).masked_fill(itself, float("-inf"))
            loss = F.cross_entropy(similar, other)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            yield loss.item()


def triplets(device: str) -> Iterator[float]:
    encoder = _network(32, 64, 16).to(device)
    optimizer = torch.optim.RMSprop(encoder.parameters(), lr=1e-3)
    x, kinds = _points(600, 32, 4).tensors
    by_kind = [x[kinds == kind] for kind in range(4)]
    for step in range(120):
        same, different = by_kind[step % 4], by_kind[(step + 1) % 4]
        picked = torch.randint(min(len(same), len(different)), (3, 32))
        anchor, near = same[picked[0]].to(device), same[picked[1]].to(device)
        far = different[picked[2]].to(device)
        loss = F.triplet_margin_loss(encoder(anchor), encoder(near), encoder(far))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def distillation(device: str) -> Iterator[float]:
    teacher, student = (
        _network(32, 256, 256, 8).to(device),
        _network(32, 32, 8).to(device),
    )
    teacher.eval()
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
    for _ in range(2):
        for x, y in DataLoader(_points(3200, 32, 8), 64):
            x, y = x.to(device), y.to(device)
            with torch.no_grad():
                wanted = (teacher(x) / 2).softmax(1)
            logits = student(x)
            soft = F.kl_div((logits / 2).log_softmax(1), wanted, reduction="batchmean")
            loss = F.cross_entropy(logits, y) + 4 * soft
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()


def meta_learning(device: str) -> Iterator[float]:
    """MAML with torch.func: a gradient through a step of gradient descent."""
    model = _network(1, 40, 40, 1).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def loss_of(parameters: dict, x: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(functional_call(model, parameters, (x,)), y)

    def adapted(
        parameters: dict, x: Tensor, y: Tensor, x2: Tensor, y2: Tensor
    ) -> Tensor:
        slopes = grad(loss_of)(parameters, x, y)
        moved = {name: p - 0.01 * slopes[name] for name, p in parameters.items()}
        return loss_of(moved, x2, y2)

    for _ in range(80):
        height, phase = torch.rand(16, 1, 1) * 4 + 1, torch.rand(16, 1, 1) * 3
        x, x2 = torch.rand(16, 10, 1) * 10 - 5, torch.rand(16, 10, 1) * 10 - 5
        y, y2 = height * torch.sin(x + phase), height * torch.sin(x2 + phase)
        tasks = [tensor.to(device) for tensor in (x, y, x2, y2)]
        parameters = dict(model.named_parameters())
        loss = vmap(adapted, (None, 0, 0, 0, 0))(parameters, *tasks).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def ensemble(device: str) -> Iterator[float]:
    """Eight networks trained at once by vmap; they vote after each step."""
    models = [_network(32, 64, 8).to(device) for _ in range(8)]
    parameters, buffers = stack_module_state(models)
    skeleton = copy.deepcopy(models[0]).to("meta")
    optimizer = torch.optim.SGD(parameters.values(), lr=0.1)

    def logits_of(parameters: dict, buffers: dict, x: Tensor) -> Tensor:
        return functional_call(skeleton, (parameters, buffers), (x,))

    for x, y in DataLoader(_points(6400, 32, 8), 64):
        x, y = x.to(device), y.to(device)
        logits = vmap(logits_of, (0, 0, None))(parameters, buffers, x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.repeat(8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        (logits.mean(0).argmax(1) == y).float().mean().item()
        yield loss.item()


def averaged_weights(device: str) -> Iterator[float]:
    """SWA with batch norm, whose statistics are recomputed at the end."""
    model = nn.Sequential(
        nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 8)
    ).to(device)
    average = swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = swa_utils.SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
    loader = DataLoader(_points(2000, 32, 8), 64)
    for _ in range(4):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            yield loss.item()
        average.update_parameters(model)
        schedule.step()
    swa_utils.update_bn(loader, average, device=device)
    yield F.cross_entropy(average(x), y).item()


def tabular(device: str) -> Iterator[float]:
    """Categorical and numeric columns, a validation set, early stopping; at the end the
    best state is restored."""
    tables = nn.ModuleList(nn.Embedding(12, 6) for _ in range(5)).to(device)
    body = _network(5 * 6 + 8, 64, 32, 1).to(device)
    parameters = [*tables.parameters(), *body.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-2)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    kinds, numbers = torch.randint(12, (2500, 5)), torch.randn(2500, 8)
    wanted = (kinds.sum(1) / 30 + numbers[:, 0]).unsqueeze(1)
    best, state, bad = float("inf"), None, 0

    def predict(kinds: Tensor, numbers: Tensor) -> Tensor:
        embedded = [table(kinds[:, i]) for i, table in enumerate(tables)]
        return body(torch.cat([*embedded, numbers], 1))

    for _ in range(6):
        for rows in torch.randperm(2000).split(100):
            optimizer.zero_grad()
            x, z = kinds[rows].to(device), numbers[rows].to(device)
            loss = F.smooth_l1_loss(predict(x, z), wanted[rows].to(device))
            loss.backward()
            optimizer.step()
            yield loss.item()
        with torch.no_grad():
            found = predict(kinds[2000:].to(device), numbers[2000:].to(device))
            error = F.mse_loss(found, wanted[2000:].to(device)).item()
        plateau.step(error)
        if error < best:
            best, state, bad = error, copy.deepcopy(body.state_dict()), 0
        elif (bad := bad + 1) == 3:
            break
    body.load_state_dict(state)
