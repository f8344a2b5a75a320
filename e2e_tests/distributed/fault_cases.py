"""Cases in which some ranks call different collectives, are late or exit, and the errors
of the other ranks. Each rank of test_faults.py calls one of these functions."""

from __future__ import annotations

import datetime
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch_ltc
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def _line_of(text: str) -> str:
    """Returns "fault_cases.py:31" for the only line of this file that ends with `text`."""
    lines = Path(__file__).read_text().splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if line.endswith(text)]
    return f"{Path(__file__).name}:{number}"


def compare_programs(rank: int) -> None:
    """If ranks begin different collectives, the error on each rank names all of them."""
    torch_ltc.config.check_collectives = True
    x = torch.ones(8, device="lazy")
    dist.all_reduce(x)
    assert x.sum().item() == 8 * dist.get_world_size()
    unrelated = torch.full((8,), 2.0, device="lazy")
    torch_ltc.mark_step()
    if rank == 1:
        dist.broadcast(x, 0)  # of rank 1
    else:
        dist.all_reduce(x)  # of the others
    with pytest.raises(RuntimeError, match="begin different collectives") as caught:
        x.sum().item()
    text = str(caught.value)
    assert "2: all_reduce(sum) of 8 Float on ranks 0, 2 at " in text, text
    assert "; 2: broadcast(root 0) of 8 Float on rank 1 at " in text, text
    assert _line_of("# of rank 1") in text and _line_of("# of the others") in text, text
    assert unrelated.sum().item() == 16
    y = torch.ones(3, device="lazy")
    dist.all_reduce(y)
    assert y.sum().item() == 3 * dist.get_world_size()
    # For collectives of CPU tensors, only the names of the ops are compared.
    with pytest.raises(RuntimeError, match="c10d::barrier on rank 1") as caught:
        if rank == 1:
            dist.barrier()
        else:
            dist.all_reduce(y)
            y.sum().item()
    assert "all_reduce(sum) of 3 Float on ranks 0, 2" in str(caught.value)


def fail_in_exchange(rank: int) -> None:
    """A failed step ends only after its exchanges with other ranks have ended, because they
    use its memory."""
    torch_ltc.config.tier = "compile"
    store = dist.distributed_c10d._get_default_store()
    x = torch.ones(64, 64, device="lazy")
    weights = -x[0]
    torch_ltc.mark_step()
    if rank == 0:
        y = torch.empty_like(x)
        message = dist.irecv(y, 1)
        dist.all_reduce(weights)
        drawn = torch.multinomial(weights, 2)  # fails after the reduction
        message.wait()
        with pytest.raises(RuntimeError, match="out of range"):
            (y.sum() + drawn.sum()).item()
        assert store.check(["sent"]), "the step's memory was released before"
    else:
        dist.all_reduce(weights)
        assert weights.sum().item() == -2 * 64
        time.sleep(1)
        store.set("sent", "1")
        dist.send(x, 0)
    z = torch.ones(3, device="lazy")
    dist.all_reduce(z)
    assert z.sum().item() == 6


def be_late(rank: int, folder: str) -> None:
    """The error after a timeout names the collective, its line and the missing rank."""
    values = torch.ones(4, device="lazy")
    x = values.clone()
    torch_ltc.mark_step()
    gone = Path(folder) / "gone"
    if rank == 1:
        while not gone.exists():
            time.sleep(0.05)
        return
    dist.all_reduce(x)  # is too early
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=r"all_reduce\(sum\) of 4 Float") as caught:
        x.sum().item()
    if rank == 0:
        time.sleep(1)
        gone.touch()
    text = str(caught.value)
    assert time.monotonic() - begin < 20, "longer than the timeout"
    assert _line_of("# is too early") in text, text
    assert f"failed on rank {rank} of 3 after " in text, text
    assert "Rank 1 hasn't arrived: it is late or has ended." in text, text
    assert values.sum().item() == 4


def notice_later(rank: int) -> None:
    """A loop that reads no values raises the error at the next collective."""
    x = torch.ones(4, device="lazy")
    if rank == 1:
        return
    with pytest.raises(RuntimeError, match="noticed at the next collective"):
        for _ in range(100):
            dist.all_reduce(x)
            torch_ltc.mark_step()
            time.sleep(0.1)


def fail_unnoticed(rank: int) -> None:
    """Rank 0 ends after collectives that rank 1 didn't reach, without reading a value."""
    x = torch.ones(4, device="lazy")
    for _ in range(2 - rank):
        dist.all_reduce(x)
        torch_ltc.mark_step()
    sys.exit(0)


def wait_shortly(rank: int, folder: str) -> None:
    """A wait with a timeout ends with an error, long before the group's timeout."""
    x = torch.zeros(3, device="lazy")
    gave_up = Path(folder) / "gave up"
    if rank == 1:
        begin = time.monotonic()
        with pytest.raises(RuntimeError, match=r"after 700 ms.*fault_cases\.py:"):
            dist.irecv(x, 0).wait(datetime.timedelta(seconds=0.7))
        assert 0.6 < time.monotonic() - begin < 20
        gave_up.touch()
        assert x.tolist() == [5.0] * 3  # the message arrives later
        assert dist.irecv(x, 0).wait(datetime.timedelta(seconds=30))
    else:
        while not gave_up.exists():
            time.sleep(0.02)
        for _ in range(2):
            dist.send(torch.full((3,), 5.0, device="lazy"), 1)


def pause_after_collective(rank: int, folder: str) -> None:
    """Rank 0 sends a value that it never reads, then waits for a file that rank 1 writes
    when it has the value."""
    value = torch.full((4,), float(rank), device="lazy") + 3
    dist.broadcast(value, 0)  # of the pause
    received = Path(folder) / "received"
    if rank == 1:
        assert value.tolist() == [3.0] * 4
        received.touch()
        return
    end = time.monotonic() + 30
    while not received.exists():
        assert time.monotonic() < end, "the broadcast hasn't started"
        time.sleep(0.01)
    [cut] = torch_ltc.syncs()
    assert "a pause of" in cut["op"], cut
    assert cut["location"] == _line_of("# of the pause")
    assert (value + 1).tolist() == [4.0] * 4


class _SlowImport:
    """Delays the import of a module, as a slow disk does."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "torch._dynamo":
            time.sleep(1)


def import_during_op(rank: int, tier: str) -> None:
    """The first op whose Meta kernel is written in Python imports modules, which takes
    longer than the pause after which the traced collectives run."""
    torch_ltc.config.tier = tier
    value = torch.full((4, 2), float(rank + 1), device="lazy")
    dist.all_reduce(value)
    assert "torch._dynamo" not in sys.modules
    sys.meta_path.insert(0, _SlowImport())
    magnitude = torch.view_as_complex(value).abs()
    assert "torch._dynamo" in sys.modules
    assert magnitude.tolist() == pytest.approx([3 * 2**0.5] * 4)


def leave_traced(rank: int, folder: str) -> None:
    """Pending collectives of a rank run when its process ends."""
    x = torch.full((4,), float(rank + 1), device="lazy")
    dist.all_reduce(x)
    if rank == 0:
        (Path(folder) / "sum").write_text(json.dumps(x.tolist()))


def die(rank: int, place: str, folder: str) -> None:
    """Kills rank 1. The other ranks write their errors and the seconds between the kill and
    the error to files."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)).to("lazy")
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    killed = Path(folder) / "killed"

    def kill_if(now: str, step: int) -> None:
        if rank == 1 and step == 3 and now == place:
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        for step in range(1000):
            loss = ddp(torch.ones(4, 8, device="lazy")).square().mean()
            kill_if("forward", step)
            loss.backward()
            kill_if("backward", step)
            optimizer.step()
            kill_if("collective", step)
            loss.item()
    except RuntimeError as error:
        late = time.time() - killed.stat().st_mtime
        report = {"error": str(error), "seconds": late}
        (Path(folder) / f"rank{rank}.json").write_text(json.dumps(report))


def end_with_the_store(rank: int) -> None:
    """If the rank that hosts the job's store ends, the error of the others doesn't wait for
    the group's timeout, in which the store could answer."""
    ranks, timeout = dist.get_world_size(), datetime.timedelta(seconds=90)
    host, port = "127.0.0.1", [0]  # 0: any free port
    if rank == 0:
        store = dist.TCPStore(host, 0, None, True, timeout, wait_for_workers=False)
        port = [store.port]
    dist.broadcast_object_list(port)
    if rank != 0:
        store = dist.TCPStore(host, port[0], None, False, timeout)
    dist.destroy_process_group()
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=ranks, timeout=timeout
    )
    x = torch.ones(2, device="lazy")
    dist.all_reduce(x)
    assert x.sum().item() == 2 * dist.get_world_size()
    if rank == 0:
        os._exit(0)
    time.sleep(1)
    begin = time.monotonic()
    dist.all_reduce(x)
    with pytest.raises(RuntimeError, match="all_reduce"):
        x.sum().item()
    assert time.monotonic() - begin < 20
    os._exit(0)
