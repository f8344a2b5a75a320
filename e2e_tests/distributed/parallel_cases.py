"""Runs features of torch.distributed that are built on collectives, and compares device
lazy with the CPU. Each rank of test_parallel.py calls `compare`."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from comparison import assert_close
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.nn import functional as differentiable
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel


def perceptron(device: str) -> nn.Module:
    torch.manual_seed(1)
    layers = nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)
    return nn.Sequential(*layers).to(device)


def batch(device: str):
    generator = torch.Generator().manual_seed(dist.get_rank())
    x = torch.randn(4, 8, generator=generator)
    y = torch.randint(4, (4,), generator=generator)
    return x.to(device), y.to(device)


def step(model: nn.Module, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def mesh(device: str):
    x = torch.ones(3, device=device) * (dist.get_rank() + 1)
    whole = DeviceMesh(device, list(range(dist.get_world_size())))
    dist.all_reduce(x, group=whole.get_group())
    yield x
    halves = init_device_mesh(device, (2, dist.get_world_size() // 2))
    dist.all_reduce(x, group=halves.get_group(0))
    yield x


def gradients_of_collectives(device: str):
    x = (torch.arange(4.0) + dist.get_rank()).to(device).requires_grad_()
    summed = differentiable.all_reduce(x * 2)
    gathered = torch.stack(differentiable.all_gather(x))
    sent = differentiable.broadcast(x * 1, 0)
    exchanged = differentiable.all_to_all_single(torch.zeros(4, device=device), x * 3)
    (summed.square().sum() + gathered.sum() + sent.sum() + exchanged.square().sum()
     ).backward()  # fmt: skip
    yield from (summed.detach(), gathered.detach(), x.grad)


def functional_collectives(device: str):
    group = dist.group.WORLD
    x = (torch.arange(4.0) + dist.get_rank()).to(device)
    zeros = [0, 0]
    yield functional.all_reduce(x, "sum", group) + 1
    yield functional.all_gather_tensor(x, 0, group) + 1
    yield functional.reduce_scatter_tensor(x, "avg", 0, group) + 1
    yield functional.all_to_all_single(x, None, None, group) + 1
    yield functional.broadcast(x, 0, group) + 1
    for results in (
        functional.all_reduce_coalesced([x, x + 1], "max", group),
        functional.all_gather_into_tensor_coalesced([x, x * 2], group),
        functional.reduce_scatter_tensor_coalesced([x, x * 2], "sum", zeros, group),
    ):
        yield from (result + 1 for result in results)


def compiled(device: str):
    group = dist.group.WORLD

    def function(x):
        return functional.all_reduce(x * 2, "sum", group).relu() - x

    if device == "lazy":
        function = torch.compile(function, backend="torch_ltc")
    yield function((torch.arange(4.0) + dist.get_rank()).to(device))


def sharded_optimizer(device: str):
    model = DistributedDataParallel(perceptron(device))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    for _ in range(3):
        yield step(model, optimizer, *batch(device))
    yield from model.parameters()


def uneven_inputs(device: str):
    model = DistributedDataParallel(perceptron(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with model.join():
        for _ in range(2 + dist.get_rank()):
            step(model, optimizer, *batch(device))
    yield from model.parameters()


def pipeline(device: str):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    module = [nn.Linear(8, 8) for _ in range(ranks)][rank].to(device)
    stage = PipelineStage(module, rank, ranks, torch.device(device))
    schedule = ScheduleGPipe(stage, 2, loss_fn=nn.functional.mse_loss)
    torch.manual_seed(3)
    x, y = torch.randn(4, 8).to(device), torch.randn(4, 8).to(device)
    losses = []
    if rank == 0:
        schedule.step(x)
    elif rank == ranks - 1:
        schedule.step(target=y, losses=losses)
    else:
        schedule.step()
    yield from (parameter.grad for parameter in module.parameters())
    yield from losses


def distributed_tensors(device: str):
    whole = init_device_mesh(device, (dist.get_world_size(),))
    torch.manual_seed(2)
    a, b = torch.randn(8, 4).to(device), torch.randn(4, 4).to(device)
    rows = distribute_tensor(a, whole, [Shard(0)])
    columns = rows.redistribute(whole, [Shard(1)])
    yield (rows @ distribute_tensor(b, whole, [Replicate()])).full_tensor()
    yield (columns @ distribute_tensor(b, whole, [Shard(0)])).full_tensor()
    yield rows.sum().full_tensor()
    yield columns.to_local()
    for reduce in (torch.max, torch.min, torch.median):
        for placement in (Replicate(), Shard(0)):
            operand = distribute_tensor(a, whole, [placement]).requires_grad_()
            reduce(operand).backward()
            yield operand.grad.full_tensor()


def tensor_parallel(device: str):
    whole = init_device_mesh(device, (dist.get_world_size(),))
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(device)
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    model = parallelize_module(model, whole, plan)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(3)  # the same batch on each rank
    x, y = torch.randn(4, 8).to(device), torch.randint(4, (4,)).to(device)
    for _ in range(3):
        yield step(model, optimizer, x, y)
    for parameter in model.parameters():
        yield parameter.full_tensor()


def tensor_parallel_in_part(device: str):
    """The optimizers' parameters are DTensors and tensors."""
    whole = init_device_mesh(device, (dist.get_world_size(),))
    for kind in (torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop):
        model = perceptron(device)
        plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        model = parallelize_module(model, whole, plan)
        optimizer = kind(model.parameters(), lr=0.01)
        torch.manual_seed(3)
        x, y = torch.randn(4, 8).to(device), torch.randint(4, (4,)).to(device)
        for _ in range(2):
            yield step(model, optimizer, x, y)


def random_distributed_tensors(device: str):
    """Each rank draws the numbers of its part from its own generator, as on the CPU."""
    whole = init_device_mesh(device, (dist.get_world_size(),))
    for placement in (Shard(0), Replicate()):
        torch.manual_seed(5)
        x = distribute_tensor(torch.ones(8, 4, device=device), whole, [placement])
        yield nn.functional.dropout(x, 0.5).full_tensor()
        yield torch.rand_like(x).full_tensor()


CASES = [
    distributed_tensors,
    random_distributed_tensors,
    tensor_parallel_in_part,
    tensor_parallel,
    mesh,
    gradients_of_collectives,
    functional_collectives,
    compiled,
    sharded_optimizer,
    uneven_inputs,
    pipeline,
]

#: Additional tolerances: eager rounds to bfloat16 after each op, a compiled kernel once.
ROUNDED = {"mixed_precision": 3e-2}


def compare(rank: int, tier: str, cases: list[Callable] = CASES) -> None:
    import torch_ltc

    torch_ltc.config.tier = tier
    warnings.simplefilter("ignore")
    for case in cases:
        expected = [result.detach() for result in case("cpu")]
        torch_ltc.reset_metrics()
        ours = [result.detach() for result in case("lazy")]
        assert not torch_ltc.fallbacks(), (case.__name__, torch_ltc.fallbacks())
        rounded = ROUNDED.get(case.__name__, 0)
        assert_close(ours, expected, 1e-5 + rounded, 1e-6 + rounded, case.__name__)
