"""Trains a convolutional network on handwritten digits with several processes.

    export OMP_NUM_THREADS=1 TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
    torchrun --nproc-per-node 2 --max-restarts 3 examples/train_distributed.py

Each epoch ends with a checkpoint. If a process dies, torchrun restarts all processes, and
they resume from the last checkpoint: the final loss is the same as without the failure.
The second variable is explained in docs/distributed.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch_ltc  # noqa: F401 (device "lazy")
from models.convolutional import LeNet
from models.data import digits
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32, help="of each process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="lazy", choices=["lazy", "cpu"])
    parser.add_argument("--out", type=Path, default=Path("runs/distributed"))
    parser.add_argument(
        "--timeout", type=float, default=60, help="seconds a collective may take"
    )
    return parser.parse_args()


def save(path: Path, state: dict) -> None:
    """Replaces the file atomically: it is complete even if the process dies meanwhile."""
    temporary = path.with_suffix(f".{os.getpid()}")
    with open(temporary, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def main() -> None:
    options = parse()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    timeout = datetime.timedelta(seconds=options.timeout)
    dist.init_process_group("gloo", timeout=timeout)
    rank = dist.get_rank()
    options.out.mkdir(parents=True, exist_ok=True)
    checkpoint = options.out / "checkpoint.pt"

    torch.manual_seed(options.seed)
    model = LeNet().to(options.device)
    ddp = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=2e-3)
    data = TensorDataset(*digits())
    sampler = DistributedSampler(data, seed=options.seed)
    loader = DataLoader(data, options.batch, sampler=sampler, drop_last=True)
    begin, mean = 0, float("nan")
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location="cpu")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        begin, mean = state["epoch"] + 1, state["loss"]
        print(f"rank {rank} continues with epoch {begin + 1}", flush=True)

    for epoch in range(begin, options.epochs):
        # An epoch's random numbers depend only on its index, not on earlier epochs.
        torch.manual_seed(options.seed + 1000 * epoch + rank)
        sampler.set_epoch(epoch)
        losses = []
        for images, classes in loader:
            optimizer.zero_grad()
            output = ddp(images.to(options.device))
            loss = F.cross_entropy(output, classes.to(options.device))
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        total = torch.stack(losses).mean()
        dist.all_reduce(total)
        mean = total.item() / dist.get_world_size()
        if rank == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            save(checkpoint, {**state, "epoch": epoch, "loss": mean})
            print(f"epoch {epoch + 1}: loss {mean:.6f}", flush=True)
    if rank == 0:
        print(f"final loss {mean:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
