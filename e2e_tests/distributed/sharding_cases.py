"""Trains with FSDP2's `fully_shard` on a device. Each rank of test_sharding.py calls these
functions."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from distributed.parallel_cases import batch, perceptron, step
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Shard


def _whole(device: str) -> DeviceMesh:
    return init_device_mesh(device, (dist.get_world_size(),))


def sharded(device: str, mesh: DeviceMesh | None = None, **options) -> nn.Module:
    options["mesh"] = mesh or _whole(device)
    model = perceptron(device)
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **options)
    return fully_shard(model, **options)


def _train(model: nn.Module, device: str, steps: int = 3):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        yield step(model, optimizer, *batch(device))
    for parameter in model.parameters():
        yield parameter.full_tensor()


def parameters(device: str):
    yield from _train(sharded(device), device)


def fused(device: str):
    """The fused optimizer writes the parameters' shards."""
    model = sharded(device)
    for lr in (0.01, torch.tensor(0.01)):
        optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
        for _ in range(2):
            yield step(model, optimizer, *batch(device))


def scaled(device: str):
    model = sharded(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler(device, init_scale=64.0)
    x, y = batch(device)
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        yield loss.detach()


def kept_after_forward(device: str):
    yield from _train(sharded(device, reshard_after_forward=False), device)


def resharded_to_some(device: str):
    """After the forward pass, parameters are sharded over half of the ranks."""
    ranks = dist.get_world_size() // 2
    if ranks > 1:
        yield from _train(sharded(device, reshard_after_forward=ranks), device)


def columns(device: str):
    def by_columns(parameter: nn.Parameter) -> Shard:
        return Shard(parameter.dim() - 1)

    yield from _train(sharded(device, shard_placement_fn=by_columns), device)


def uneven(device: str):
    """Shards parameters into parts of different sizes, some of them empty."""
    torch.manual_seed(1)
    layers = nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 4)
    model = fully_shard(nn.Sequential(*layers).to(device), mesh=_whole(device))
    yield from _train(model, device)


def mixed_precision(device: str):
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.float32)
    yield from _train(sharded(device, mp_policy=policy), device)


def accumulated(device: str):
    model = sharded(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = batch(device)
    for _ in range(2):
        for is_last in (False, True):
            model.set_requires_gradient_sync(is_last)
            nn.functional.cross_entropy(model(x), y).backward()
            x = x.flip(0)
        optimizer.step()
        optimizer.zero_grad()
    for parameter in model.parameters():
        yield parameter.full_tensor()


def hybrid(device: str):
    """Shards parameters along the rows of the mesh; replicates them along the columns."""
    rows, columns = 2, dist.get_world_size() // 2
    mesh = init_device_mesh(device, (rows, columns), mesh_dim_names=("dp", "shard"))
    yield from _train(sharded(device, mesh), device)


def clipped(device: str):
    model = sharded(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        x, y = batch(device)
        nn.functional.cross_entropy(model(x), y).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        yield norm.full_tensor()
    for parameter in model.parameters():
        yield parameter.full_tensor()


def frozen(device: str):
    """The first layer has no gradients, although it is gathered before them."""
    model = perceptron(device)
    model[0].requires_grad_(False)
    for layer in (model[0], model[-1], model):
        fully_shard(layer, mesh=_whole(device))
    yield from _train(model, device)


def evaluated(device: str):
    """Training continues after the parameters have been gathered in inference_mode."""
    model = sharded(device)
    for _ in range(2):
        yield from _train(model, device, steps=2)
        with torch.inference_mode():
            result = model(batch(device)[0])
        yield result.clone()


def from_meta(device: str):
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    fully_shard(model, mesh=_whole(device))
    model.to_empty(device=device)
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    yield step(model, optimizer, *batch(device))


def from_cpu(device: str):
    """`fully_shard` moves the parameters to the mesh's device."""
    model = fully_shard(perceptron("cpu"), mesh=_whole(device))
    yield from _train(model, device)


def offloaded(device: str):
    """Shards are on the CPU, where the optimizer updates them."""
    policy = CPUOffloadPolicy(pin_memory=False)
    model = fully_shard(perceptron("cpu"), mesh=_whole(device), offload_policy=policy)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        yield step(model, optimizer, *batch(device))
    for parameter in model.parameters():
        assert parameter.to_local().device.type == "cpu"
        yield parameter.detach().to(device).full_tensor()


def state_dicts(device: str):
    """Saves and loads sharded and whole state dicts."""
    model, other = sharded(device), sharded(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    step(model, optimizer, *batch(device))
    other.load_state_dict(model.state_dict())
    for parameter in other.parameters():
        yield parameter.full_tensor()
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    yield from whole.values()
    zeros = {name: torch.zeros_like(value) for name, value in whole.items()}
    set_model_state_dict(
        model, zeros, options=StateDictOptions(full_state_dict=True)
    )  # fmt: skip
    for parameter in model.parameters():
        yield parameter.full_tensor()


def choose_mesh(rank: int) -> None:
    """Without a mesh, `fully_shard` uses device lazy once the process has lazy tensors."""
    expected = list(_train(sharded("lazy"), "lazy"))
    model = perceptron("lazy")
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    ours = list(_train(fully_shard(model), "lazy"))
    assert {p.device.type for p in model.parameters()} == {"lazy"}
    assert all(a.equal(b) for a, b in zip(ours, expected, strict=True))


def bind_device(rank: int) -> None:
    """A mesh of two dims needs more groups than the default group, which was created for
    the device."""
    rows = dist.get_world_size() // 2
    mesh = init_device_mesh("lazy", (rows, 2), mesh_dim_names=("dp", "shard"))
    assert mesh["shard"].get_group().size() == 2
    total = torch.full((2,), rank + 1.0, device="lazy")
    dist.all_reduce(total, group=mesh["shard"].get_group())
    assert total.tolist() == [3.0, 3.0]
    dist.barrier()
    list(_train(sharded("lazy", mesh), "lazy"))


CASES = [
    parameters,
    fused,
    scaled,
    kept_after_forward,
    resharded_to_some,
    columns,
    uneven,
    mixed_precision,
    accumulated,
    hybrid,
    clipped,
    frozen,
    evaluated,
    from_meta,
    from_cpu,
    offloaded,
    state_dicts,
]


def count_programs(rank: int) -> None:
    """After the first steps, each step runs the same program, without a cut."""
    import torch_ltc
    from counting import sync_names

    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
    for options in ({}, {"reshard_after_forward": False}, {"mp_policy": policy}):
        model = sharded("lazy", **options)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        x, y = batch("lazy")
        for number in range(8):
            if number == 4:
                torch_ltc.wait_device_ops()
                torch_ltc.reset_metrics()
            step(model, optimizer, x, y)
        torch_ltc.wait_device_ops()
        counts = torch_ltc.metrics()
        assert counts["executions"] == counts["program_memory_hits"] == 4, options
        assert not torch_ltc.fallbacks(), options
        assert not sync_names(), (options, sync_names())


def _compiled_step(
    layers: int, width: int, rows: int, steps: int
) -> tuple[nn.Sequential, dict[str, Any]]:
    """Trains a sharded model of equal layers. Returns the model, and the plan of the last
    step's program."""
    import torch_ltc

    torch_ltc.config.tier = "compile"
    model = nn.Sequential(
        *(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers))
    ).to("lazy")
    for layer in model:
        fully_shard(layer, mesh=_whole("lazy"))
    fully_shard(model, mesh=_whole("lazy"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.ones(rows, width, device="lazy")
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    torch_ltc.wait_device_ops()
    return model, torch_ltc.debug.plan()


def overlap(rank: int) -> None:
    """Layers are gathered and gradients are reduced while other layers are computed."""
    model, plan = _compiled_step(layers=4, width=64, rows=16, steps=3)
    commands = plan["commands"]
    callees = [command.get("callee", command["op"]) for command in commands]
    assert "torch_ltc::collective" not in callees, callees
    hidden = []
    for i, command in enumerate(commands):
        if callees[i] != "torch_ltc::collective_begin":
            continue
        exchanged = command["results"][-1]["buffer"]
        end = next(
            j
            for j in range(i + 1, len(commands))
            if callees[j] == "torch_ltc::collective_finish"
            and commands[j]["operands"][-1]["buffer"] == exchanged
        )
        hidden.append("matmul" in callees[i:end])
    # Three exchanges can't overlap with products: the first gathers of the forward and
    # the backward pass, and the reduction of the last gradients.
    assert len(hidden) == 3 * len(model), hidden
    assert sum(hidden) >= len(hidden) - 3, (hidden, callees)


def count_bytes(rank: int) -> None:
    """Between steps, a rank holds its parts of parameters and gradients; during a step, it
    holds a few whole layers."""
    model, plan = _compiled_step(layers=12, width=256, rows=4, steps=4)
    whole = sum(p.numel() * p.element_size() for p in model.parameters())
    outputs = {output["buffer"] for output in plan["outputs"]}
    kept = sum(plan["buffers"][buffer]["bytes"] for buffer in outputs)
    # Views count as separate values, so parts of parameters and gradients count more than
    # once. If gathered values were kept as well, they would add four parts.
    part = whole / dist.get_world_size()
    assert kept < 5.2 * part, (kept, whole)
    # The factor would be 1.8 with the gathered values of all layers.
    assert plan["arena_bytes"] < 1.2 * whole, (plan["arena_bytes"], whole)
