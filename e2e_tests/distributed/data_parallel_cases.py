"""Trains with DistributedDataParallel, and compares device lazy with the CPU. Each rank of
test_data_parallel.py calls these functions."""

from __future__ import annotations

import copy
import gc
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from comparison import assert_close
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch_ltc._diagnostics.collective_lanes import exchanges


class Branches(nn.Module):
    """Runs one of two branches, alternating between steps; the other branch has no
    gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.branches = nn.ModuleList(nn.Linear(8, 3) for _ in range(2))
        self.step = 0

    def forward(self, x):
        self.step += 1
        return self.branches[self.step % 2](self.first(x).relu())


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))


def _wide() -> nn.Module:
    layers = nn.Linear(6, 256), nn.ReLU(), nn.Linear(256, 64), nn.Linear(64, 3)
    return nn.Sequential(*layers)


def _normalized() -> nn.Module:
    # The gradient of a bias in front of the normalization would be noise.
    first = nn.Linear(6, 16, bias=False)
    return nn.Sequential(first, nn.BatchNorm1d(16), nn.Linear(16, 3))


def _batches(steps: int, device: str, size: int = 4):
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        x = torch.randn(size, 6, generator=generator)
        y = torch.randint(3, (size,), generator=generator)
        yield x.to(device), y.to(device)


def _train(
    model: nn.Module,
    device: str,
    steps: int = 4,
    hook=None,
    clip: bool = False,
    autocast: bool = False,
    accumulate: int = 1,
    bucket_cap_mb: float = 0.001,
    delayed: int = 0,
    **options,
):
    torch.manual_seed(7)  # for PowerSGD's initial values
    options["bucket_cap_mb"] = bucket_cap_mb
    model = model.to(device)
    if delayed:
        named = [(f"module.{n}", p) for n, p in model.named_parameters()]
        options["delay_all_reduce_named_params"] = named[-delayed:]
        # The gradient of the first parameter is the last one that is computed.
        options["param_to_hook_all_reduce"] = named[0][1]
    ddp = DistributedDataParallel(model, **options)
    if hook:
        ddp.register_comm_hook(*hook())
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=0.01)
    losses = []
    for step, (x, y) in enumerate(_batches(steps, device)):
        is_last = (step + 1) % accumulate == 0
        with ddp.no_sync() if not is_last else torch.enable_grad():
            with torch.autocast(device, torch.bfloat16, enabled=autocast):
                loss = nn.functional.cross_entropy(ddp(x), y)
            loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(ddp.parameters(), 0.1)
        if is_last:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.detach())
    return [
        torch.stack(losses).cpu(),
        *(p.detach().cpu() for p in ddp.state_dict().values()),
    ]


def _power_sgd():
    state = powerSGD_hook.PowerSGDState(
        None, matrix_approximation_rank=2, start_powerSGD_iter=2, min_compression_rate=1
    )
    return state, powerSGD_hook.powerSGD_hook


def _bfloat16_hook():
    """Returns the bfloat16 hook in a wrapper, because eager rejects the hook itself without
    a GPU."""
    return None, lambda state, bucket: default_hooks.bf16_compress_hook(state, bucket)


def _python_hook():
    def halve(group, bucket):
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0] / dist.get_world_size())

    return None, halve


CASES = {
    "plain": (_perceptron, {}),
    "bucket views": (_perceptron, {"gradient_as_bucket_view": True}),
    "large bucket": (_wide, {"bucket_cap_mb": 25, "accumulate": 2}),
    "static graph": (_perceptron, {"static_graph": True}),
    "unused parameters": (Branches, {"find_unused_parameters": True}),
    "buffers": (_normalized, {}),
    "delayed": (_perceptron, {"delayed": 2}),
    "accumulation": (_perceptron, {"accumulate": 2}),
    "clipped": (_perceptron, {"clip": True}),
    "autocast": (_perceptron, {"autocast": True}),
    "bf16 hook": (_perceptron, {"hook": _bfloat16_hook}),
    "fp16 hook": (
        _perceptron,
        {"hook": lambda: (None, default_hooks.fp16_compress_hook)},
    ),
    "PowerSGD": (_perceptron, {"hook": _power_sgd}),
    # Tests the order of a bucket's parameters: PowerSGD generates random numbers in this
    # order.
    "PowerSGD of one bucket": (_perceptron, {"hook": _power_sgd, "bucket_cap_mb": 25}),
    "hook in Python": (_perceptron, {"hook": _python_hook}),
}


#: Additional tolerances. Adam divides by the gradient's magnitude, which is near 0 for some
#: elements of a large model.
ROUNDED = {
    "autocast": 3e-2,
    "bf16 hook": 1e-3,
    "fp16 hook": 1e-3,
    "large bucket": 2e-5,
}


def compare(rank: int, tier: str) -> None:
    import torch_ltc

    torch_ltc.config.tier = tier
    for name, (make, options) in CASES.items():
        torch.manual_seed(1)
        model = make()
        # With delayed gradients, eager (2.13) doesn't wait for the exchange before the
        # optimizer reads its result.
        eager_options = {k: v for k, v in options.items() if k != "delayed"}
        expected = _train(copy.deepcopy(model), "cpu", **eager_options)
        trained = _train(model, "lazy", **options)
        rounded = ROUNDED.get(name, 0)
        assert_close(trained, expected, 1e-5 + rounded, 1e-6 + rounded, name)


def count_programs(rank: int) -> None:
    """After the first steps, each step runs the same program, without a cut."""
    import torch_ltc
    from counting import sync_names

    def momentum(parameters):
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)

    def sharded(parameters):
        return ZeroRedundancyOptimizer(parameters, torch.optim.AdamW, lr=0.01)

    options = [{}, {"gradient_as_bucket_view": True}, {"static_graph": True}]
    cases = [(case, None, momentum) for case in options]
    cases += [({}, _power_sgd, momentum), ({}, None, sharded)]
    for case in cases:
        options, hook, make_optimizer = case
        model = DistributedDataParallel(
            _perceptron().to("lazy"), bucket_cap_mb=0.0005, **options
        )
        if hook:
            model.register_comm_hook(*hook())
        optimizer = make_optimizer(model.parameters())
        batches = list(_batches(8, "lazy"))
        for step, (x, y) in enumerate(batches):
            if step == 4:
                torch_ltc.wait_device_ops()
                torch_ltc.reset_metrics()
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        torch_ltc.wait_device_ops()
        counts = torch_ltc.metrics()
        assert counts["executions"] == counts["program_memory_hits"] == 4, case
        assert not torch_ltc.fallbacks(), case
        assert not sync_names(), (case, sync_names())


def fill_buckets(rank: int) -> None:
    """One kernel writes a bucket, which is reduced in place."""
    import torch_ltc

    torch_ltc.config.tier = "compile"
    for as_views in (True, False):
        _fill_bucket(as_views)


def hold_memory(rank: int) -> None:
    """A rank holds the memory of eager, up to the rounding of sizes, and updates it in
    place."""
    import torch_ltc

    width = 512
    size = 4 * width * width
    x = torch.ones(4, width).to("lazy")
    for as_views in (True, False):
        before = torch.lazy.memory_allocated()
        model = DistributedDataParallel(
            nn.Linear(width, width, bias=False).to("lazy"),
            gradient_as_bucket_view=as_views,
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        for step in range(8):
            if step == 4:
                torch_ltc.wait_device_ops()
                torch.lazy.reset_peak_memory_stats()
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        torch_ltc.wait_device_ops()
        # parameters, their momentum, the bucket, and gradients if they aren't its views
        held = (3 if as_views else 4) * size + size // 4
        assert torch.lazy.memory_allocated() - before < held
        assert torch.lazy.max_memory_allocated() - before < held
        del model, optimizer
        gc.collect()


def _commands_of_steps(model: nn.Module) -> list[dict]:
    """Trains four steps. Returns the commands of the last step's program."""
    import torch_ltc

    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in _batches(4, "lazy"):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    torch_ltc.wait_device_ops()
    return torch_ltc.debug.plan()["commands"]


def _fill_bucket(as_views: bool) -> None:
    model = DistributedDataParallel(
        _perceptron().to("lazy"), gradient_as_bucket_view=as_views
    )
    commands = _commands_of_steps(model)
    elements = sum(p.numel() for p in model.parameters())
    writers = [
        command
        for command in commands
        for result in command["results"]
        if result["type"] == f"{elements}xf32"
    ]
    kernel, begin, finish = writers
    assert kernel["op"] == "kernel_call", writers
    assert begin["callee"] == "torch_ltc::collective_begin", writers
    assert finish["callee"] == "torch_ltc::collective_finish", writers
    _assert_in_place(commands, kernel["results"][0]["buffer"])


def _assert_in_place(commands: list[dict], bucket: int) -> None:
    """Asserts that the only collective reduces buffer `bucket` in place."""
    for name in ("begin", "finish"):
        callee = f"torch_ltc::collective_{name}"
        (call,) = [c for c in commands if c.get("callee") == callee]
        assert call["operands"][-1]["buffer"] == bucket, call
        assert call["results"][-1]["buffer"] == bucket, call


def write_gradients_to_buckets(rank: int) -> None:
    """The kernels of gradients write directly to the parts of a large bucket."""
    import torch_ltc

    torch_ltc.config.tier = "compile"
    model = DistributedDataParallel(_wide().to("lazy"))
    commands = _commands_of_steps(model)
    (join,) = [c for c in commands if "aten.slice_scatter" in c["ops"]]
    (bucket,) = join["results"]
    _assert_in_place(commands, bucket["buffer"])
    assert join["op"] == "join", join
    # All parts are in the bucket: a part in another buffer would be copied.
    assert {o["buffer"] for o in join["operands"]} == {bucket["buffer"]}, join
    assert len(join["operands"]) == len(list(model.parameters()))


def _synchronized(momentum: float | None = 0.1, **options) -> nn.Module:
    layers = [
        nn.Linear(6, 16, bias=False),
        nn.BatchNorm1d(16, momentum=momentum, **options),
        nn.ReLU(),
        nn.Linear(16, 3),
    ]
    return nn.Sequential(*layers)


def _images(**options) -> nn.Module:
    first = nn.Conv2d(1, 4, 2, bias=False)
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 3)), first, nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(8, 3)
    )  # fmt: skip


#: Models whose training must equal that of one process with the batches of all ranks. The
#: sizes of the batches differ between ranks.
SYNCHRONISED = {
    "plain": _synchronized,
    "average of all batches": lambda: _synchronized(momentum=None),
    "without parameters": lambda: _synchronized(affine=False),
    "without statistics": lambda: _synchronized(track_running_stats=False),
    "images": _images,
}


def _parts(x: torch.Tensor) -> list[torch.Tensor]:
    """Returns a part of `x` for each rank. The last part is empty if there are more than
    two ranks."""
    ranks = dist.get_world_size()
    empty = [0] if ranks > 2 else []
    sizes = [2 + rank for rank in range(ranks - 1 - len(empty))]
    return list(x.split([*sizes, len(x) - sum(sizes), *empty]))


def compare_synchronized(rank: int, tier: str) -> None:
    import torch_ltc
    from counting import sync_names

    torch_ltc.config.tier = tier
    for name, make in SYNCHRONISED.items():
        torch.manual_seed(1)
        whole = make()
        ours = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(whole).to("lazy"))
        ours = DistributedDataParallel(ours, forward_sync_buffers=False)
        optimizers = [
            torch.optim.SGD(model.parameters(), lr=0.1) for model in (whole, ours)
        ]
        for step in range(4):
            if step == 2:  # by then, DDP has rebuilt its buckets
                torch_ltc.reset_metrics()
            x, weights = torch.randn(12, 6), torch.randn(12, 3)
            x.requires_grad_()
            part = _parts(x.detach())[rank].to("lazy").requires_grad_()
            # DistributedDataParallel averages gradients, but the whole batch's loss is a
            # sum, so each rank multiplies its loss by the number of ranks.
            (whole(x) * weights).sum().backward()
            ranks = dist.get_world_size()
            loss = (ours(part) * _parts(weights)[rank].to("lazy")).sum() * ranks
            loss.backward()
            gradient = _parts(x.grad)[rank] * ranks
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
        assert not torch_ltc.fallbacks(), (name, torch_ltc.fallbacks())
        assert not sync_names(), (name, sync_names())
        pairs = [(part.grad, gradient)]
        states = ours.module.state_dict(), whole.state_dict()
        pairs += zip(*(state.values() for state in states), strict=True)
        for model in (whole, ours):
            model.eval()
        with torch.no_grad():
            pairs.append((ours(x.to("lazy")), whole(x)))
        for i, (result, expected) in enumerate(pairs):
            assert_close(result, expected, 1e-4, 1e-5, what=f"{name}, {i}")


def show_lanes(rank: int) -> None:
    """A dump's page shows each bucket's collective next to the commands that run meanwhile,
    and profiles name the kind of collective."""
    import torch_ltc
    from torch_ltc import dump_page

    torch_ltc.config.tier = "compile"
    model = nn.Sequential(*[nn.Linear(128, 128) for _ in range(4)]).to("lazy")
    model = DistributedDataParallel(model, bucket_cap_mb=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(8, 128, device="lazy")
    with tempfile.TemporaryDirectory() as folder:
        with (
            torch_ltc.debug.dump_to(folder),
            torch_ltc.config(profile_commands=True),
        ):
            for _ in range(6):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
                torch_ltc.mark_step()
            torch_ltc.wait_device_ops()
        last = max(Path(folder).glob("*/index.html"), key=lambda p: p.stat().st_mtime)
        page, dump = last.read_text(), dump_page.read_dump(last.parent)
    found = exchanges(dump.commands)
    assert len(found) == 2, [command.name for command in dump.commands]
    assert {exchange.start.collective for exchange in found} == {"all_reduce"}
    assert len(found[0].between) > 4, "backward continues"
    assert found[0].wait.number > found[1].start.number
    lanes = page.partition('<h2 id="collectives">')[2].partition("<h2")[0]
    assert lanes.count("<rect") == len(dump.commands) + len(found)
    assert "all_reduce, 129.0 KB" in lanes
    assert "the step computes for" in lanes, "without times"
    names = [row["name"] for row in torch_ltc.debug.commands()]
    assert names.count("torch_ltc.collective_start all_reduce") == 2, names
    assert names.count("torch_ltc.collective_wait all_reduce") == 2, names
