"""Trains with FSDP1's FullyShardedDataParallel, whose flat parameters share the memory of
the module's parameters, on a device. Each rank of test_sharding.py calls these functions.
"""

from __future__ import annotations

import torch
from distributed.parallel_cases import batch, perceptron, step
from torch import nn
from torch.distributed.fsdp import (
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

_LAYERS = ModuleWrapPolicy({nn.Linear})


def _sharded(device: str, **options) -> FullyShardedDataParallel:
    options.setdefault("device_id", torch.device(device))
    return FullyShardedDataParallel(perceptron(device), **options)


def _train(model: nn.Module, device: str, steps: int = 3):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        yield step(model, optimizer, *batch(device))
    with FullyShardedDataParallel.summon_full_params(model):
        yield from [parameter.clone() for parameter in model.parameters()]


def flat_parameters(device: str):
    yield from _train(_sharded(device), device)


def kept_after_forward(device: str):
    strategy = ShardingStrategy.SHARD_GRAD_OP
    yield from _train(_sharded(device, sharding_strategy=strategy), device)


def not_sharded(device: str):
    strategy = ShardingStrategy.NO_SHARD
    yield from _train(_sharded(device, sharding_strategy=strategy), device)


def each_layer(device: str):
    yield from _train(_sharded(device, auto_wrap_policy=_LAYERS), device)


def original_parameters(device: str):
    model = _sharded(
        device,
        auto_wrap_policy=_LAYERS,
        use_orig_params=True,
        device_id=torch.device("lazy", 0) if device == "lazy" else torch.device("cpu"),
    )
    yield from _train(model, device)


def mixed_precision(device: str):
    precision = MixedPrecision(torch.bfloat16, torch.float32, torch.float32)
    yield from _train(_sharded(device, mixed_precision=precision), device)


def accumulated_and_clipped(device: str):
    model = _sharded(device, auto_wrap_policy=_LAYERS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        x, y = batch(device)
        with model.no_sync():
            nn.functional.cross_entropy(model(x), y).backward()
        nn.functional.cross_entropy(model(2 * x), y).backward()
        yield model.clip_grad_norm_(0.1)
        optimizer.step()
        optimizer.zero_grad()
    yield model(batch(device)[0])


CASES = [
    flat_parameters,
    kept_after_forward,
    not_sharded,
    each_layer,
    original_parameters,
    mixed_precision,
    accumulated_and_clipped,
]


def restore_whole_state(rank: int) -> None:
    """The state of all ranks is gathered on the CPU and loaded again. (Eager can't offload
    a state from CPU to CPU.)"""
    kind = FullyShardedDataParallel
    for original in (False, True):
        model = _sharded("lazy", auto_wrap_policy=_LAYERS, use_orig_params=original)
        _, *parameters = [r.cpu() for r in _train(model, "lazy", steps=1)]
        config = FullStateDictConfig(offload_to_cpu=True, rank0_only=False)
        with kind.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
            state = model.state_dict()
        assert {value.device.type for value in state.values()} == {"cpu"}
        whole = torch.cat([value.flatten() for value in state.values()])
        assert whole.equal(torch.cat([p.flatten() for p in parameters]))
        x, y = batch("lazy")
        before = model(x).tolist()
        list(_train(model, "lazy", steps=1))
        assert model(x).tolist() != before
        with kind.state_dict_type(model, StateDictType.FULL_STATE_DICT):
            model.load_state_dict(state)
        assert model(x).tolist() == before
        nn.functional.cross_entropy(model(x), y).backward()
        assert all(p.grad is not None for p in model.parameters() if p.numel())
