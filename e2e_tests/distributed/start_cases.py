"""Counts what ranks compile, and compares what they replay with eager. Each rank of
test_start.py and test_replays.py calls these functions."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import torch
import torch.distributed as dist
from comparison import assert_close
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def _model() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))


def count_compilations(rank: int, tier: str, folder: str) -> None:
    import torch_ltc

    torch_ltc.config.tier = tier
    torch_ltc.config.cache_dir = str(Path(folder) / "cache")
    torch_ltc.reset_metrics()
    model = DistributedDataParallel(_model().to("lazy"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.ones(4, 6, device="lazy")).square().mean().backward()
        optimizer.step()
        torch_ltc.wait_device_ops()
    torch_ltc.wait_for_compilations()
    counts = torch_ltc.metrics()
    report = {name: counts[name] for name in ("compilations", "program_disk_hits")}
    # Interpreted programs aren't counted.
    report["programs"] = counts["compilations"] + counts["program_disk_hits"]
    (Path(folder) / f"rank{rank}.json").write_text(json.dumps(report))


def _losses(device: str, steps: int, capture: bool):
    import torch_ltc

    rank = dist.get_rank()
    model = copy.deepcopy(_model()).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        return loss.detach()

    function = torch_ltc.capture(step) if capture else step
    generator = torch.Generator().manual_seed(rank)
    batches = [torch.randn(4, 6, generator=generator) for _ in range(steps)]
    losses = [function(x.to(device)) for x in batches]
    values = [
        torch.stack(losses).cpu(),
        *(p.detach().cpu() for p in model.parameters()),
    ]
    return values, function


def compare_replays(rank: int, tier: str) -> None:
    import torch_ltc

    torch_ltc.config.tier = tier
    expected, _ = _losses("cpu", 12, capture=False)
    values, function = _losses("lazy", 12, capture=True)
    assert_close(values, expected, rtol=1e-5, atol=1e-6)
    assert function.replays >= 6, (function.traces, dict(function.fallbacks))
    # A collective that is traced after replays has eager's value, too.
    x = torch.ones(2, device="lazy")
    dist.all_reduce(x)
    assert x.tolist() == [dist.get_world_size()] * 2


def _training(device: str, views: bool, capture: bool):
    """Trains with DistributedDataParallel; a collective and a read of a gradient follow
    each step. Returns the values that were read, the model's state, and the step."""
    import torch_ltc

    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Linear(6, 16, bias=False), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 3)
    )
    model = DistributedDataParallel(
        model.to(device), bucket_cap_mb=0.0005, gradient_as_bucket_view=views
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, eps=1e-4)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    function = torch_ltc.capture(step) if capture else step
    generator = torch.Generator().manual_seed(dist.get_rank())
    parts = [p.detach().view(-1)[:2] for p in model.parameters()]
    seen = []
    for _ in range(14):
        loss = function(torch.randn(4, 6, generator=generator).to(device))
        dist.all_reduce(loss)
        seen += [loss, model.module[0].weight.grad.sum(), *(p.sum() for p in parts)]
    return [v.cpu() for v in (*seen, *model.state_dict().values())], function


def compare_data_parallel(rank: int, tier: str) -> None:
    import torch_ltc

    torch_ltc.config.tier = tier
    for views in (False, True):
        expected, _ = _training("cpu", views, capture=False)
        values, function = _training("lazy", views, capture=True)
        assert_close(values, expected, rtol=1e-5, atol=1e-6)
        assert function.replays >= 8, (function.traces, dict(function.fallbacks))
