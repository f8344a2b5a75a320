"""Trains as in the tutorials and libraries that people copy from: tensor parallelism with
sequence and loss parallelism, a loss whose classes are divided between ranks, a mixture of
experts, a pipeline of sends and receives. Each rank of test_parallel.py calls `compare` of
parallel_cases.py with these cases."""

from __future__ import annotations

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

WIDTH, CLASSES = 16, 24


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)
        )

    def forward(self, x):
        # A rank has some of the four heads.
        split = (*x.shape[:2], -1, WIDTH // 4)
        query, key, value = (
            layer(x).view(split).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        y = nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=True
        )
        return self.output(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first_norm, self.second_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        layers = nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH)
        self.perceptron = nn.Sequential(*layers)

    def forward(self, x):
        x = x + self.attention(self.first_norm(x))
        return x + self.perceptron(self.second_norm(x))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(CLASSES, WIDTH)
        self.layer = Layer()
        self.output = nn.Linear(WIDTH, CLASSES, bias=False)

    def forward(self, tokens):
        return self.output(self.layer(self.embedding(tokens)))


def _parallelize(model: nn.Module, mesh, keeps_classes_divided: bool) -> nn.Module:
    rows, whole = Shard(1), Replicate()
    gather = PrepareModuleInput(input_layouts=(rows,), desired_input_layouts=(whole,))
    plan = {
        "embedding": RowwiseParallel(input_layouts=whole, output_layouts=rows),
        "layer.first_norm": SequenceParallel(),
        "layer.attention": gather,
        "layer.attention.query": ColwiseParallel(),
        "layer.attention.key": ColwiseParallel(),
        "layer.attention.value": ColwiseParallel(),
        "layer.attention.output": RowwiseParallel(output_layouts=rows),
        "layer.second_norm": SequenceParallel(),
        "layer.perceptron": gather,
        "layer.perceptron.0": ColwiseParallel(),
        "layer.perceptron.2": RowwiseParallel(output_layouts=rows),
        "output": ColwiseParallel(
            input_layouts=rows,
            output_layouts=Shard(-1) if keeps_classes_divided else whole,
            use_local_output=not keeps_classes_divided,
        ),
    }
    return parallelize_module(model, mesh, plan)


def _train(model: nn.Module, device: str, seed: int, divided: bool = False):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(3):
        tokens = torch.randint(CLASSES, (2, 9), generator=generator).to(device)
        with loss_parallel() if divided else contextlib.nullcontext():
            logits = model(tokens[:, :-1]).flatten(0, 1)
            loss = nn.functional.cross_entropy(logits, tokens[:, 1:].flatten())
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.full_tensor() if divided else loss
    for parameter in model.parameters():
        yield parameter.full_tensor()


def sequence_parallel(device: str):
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    for divided in (False, True):
        torch.manual_seed(1)
        model = _parallelize(Transformer().to(device), mesh, divided)
        yield from _train(model, device, seed=2, divided=divided)


def sharded_in_two_dimensions(device: str):
    """Parameters are divided by tensor parallelism, and the parts by `fully_shard`."""
    sizes = dist.get_world_size() // 2, 2
    mesh = init_device_mesh(device, sizes, mesh_dim_names=("data", "tensor"))
    torch.manual_seed(1)
    model = _parallelize(Transformer().to(device), mesh["tensor"], False)
    fully_shard(model.layer, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    yield from _train(model, device, seed=mesh["data"].get_local_rank())


class DividedLoss(torch.autograd.Function):
    """The cross entropy of logits whose classes are divided among the ranks."""

    @staticmethod
    def forward(context, logits, target):
        maximum = logits.amax(-1)
        dist.all_reduce(maximum, op=dist.ReduceOp.MAX)
        logits = logits - maximum.unsqueeze(-1)
        classes = logits.shape[-1]
        local = target - dist.get_rank() * classes
        is_elsewhere = (local < 0) | (local >= classes)
        local[is_elsewhere] = 0
        chosen = logits[torch.arange(len(local), device=logits.device), local]
        chosen[is_elsewhere] = 0.0
        dist.all_reduce(chosen)
        exponentials = logits.exp()
        total = exponentials.sum(-1)
        dist.all_reduce(total)
        probabilities = exponentials.div_(total.unsqueeze(-1))
        context.save_for_backward(probabilities, is_elsewhere, local)
        return total.log() - chosen

    @staticmethod
    def backward(context, gradient):
        probabilities, is_elsewhere, local = context.saved_tensors
        rows = torch.arange(len(local), device=local.device)
        probabilities[rows, local] -= 1.0 - is_elsewhere.float()
        return probabilities.mul_(gradient.unsqueeze(-1)), None


def divided_loss(device: str):
    torch.manual_seed(3)
    whole = torch.randn(8, CLASSES)
    part = whole.chunk(dist.get_world_size(), 1)[dist.get_rank()]
    weight = nn.Parameter(part.clone().to(device))
    optimizer = torch.optim.AdamW([weight], lr=0.01)
    for _ in range(3):
        x, y = torch.randn(5, 8).to(device), torch.randint(CLASSES, (5,)).to(device)
        loss = DividedLoss.apply(x @ weight, y).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = weight.grad.square().sum()
        dist.all_reduce(norm)
        weight.grad.mul_((1 / norm.sqrt()).clamp(max=1.0))
        optimizer.step()
        yield loss
    yield weight


class Exchange(torch.autograd.Function):
    """Sends rows to the ranks of their experts."""

    @staticmethod
    def forward(context, x, received: list[int], sent: list[int]):
        context.sizes = received, sent
        y = x.new_empty(sum(received), x.shape[1])
        dist.all_to_all_single(y, x.contiguous(), received, sent)
        return y

    @staticmethod
    def backward(context, gradient):
        received, sent = context.sizes
        result = gradient.new_empty(sum(sent), gradient.shape[1])
        dist.all_to_all_single(result, gradient.contiguous(), sent, received)
        return result, None, None


def experts(device: str):
    """How many rows each rank sends depends on values."""
    ranks = dist.get_world_size()
    torch.manual_seed(4)
    gate = nn.Linear(6, ranks).to(device)
    expert = nn.Linear(6, 6).to(device)
    parameters = [*gate.parameters(), *expert.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(3):
        x = torch.randn(10, 6, generator=generator).to(device)
        weight, chosen = gate(x).softmax(-1).max(-1)
        order = chosen.argsort(stable=True)
        numbers = torch.arange(ranks, device=device)
        counts = (chosen == numbers.unsqueeze(1)).sum(1)
        expected = torch.empty_like(counts)
        dist.all_to_all_single(expected, counts)
        sizes = expected.tolist(), counts.tolist()
        rows = expert(Exchange.apply(x[order], *sizes))
        rows = Exchange.apply(rows, *reversed(sizes))
        y = torch.zeros_like(x).index_copy(0, order, rows) * weight.unsqueeze(1)
        loss = (y - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in gate.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        yield loss
    yield from parameters


def pipeline_of_messages(device: str):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    torch.manual_seed(5)
    stage = [nn.Linear(6, 6) for _ in range(last + 1)][rank].to(device)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.1)
    for _ in range(3):
        batch, target = torch.randn(8, 6).to(device), torch.randn(8, 6).to(device)
        ends = []
        for x, y in zip(batch.chunk(4), target.chunk(4), strict=True):
            if rank:
                x = torch.empty(2, 6, device=device)
                dist.recv(x, rank - 1)
                x.requires_grad_()
            result = stage(x).tanh()
            if rank == last:
                result = nn.functional.mse_loss(result, y) / 4
                yield result
            else:
                dist.send(result.detach(), rank + 1)
            ends.append((x, result))
        for x, result in ends:
            gradient = None
            if rank < last:
                gradient = torch.empty(2, 6, device=device)
                dist.recv(gradient, rank + 1)
            result.backward(gradient)
            if rank:
                dist.send(x.grad, rank - 1)
        optimizer.step()
        optimizer.zero_grad()
    yield from stage.parameters()


CASES = [sequence_parallel, divided_loss, experts, pipeline_of_messages]
CASES_OF_FOUR_RANKS = [*CASES, sharded_in_two_dimensions]
