"""Saves distributed checkpoints of training on a device, and loads them on either device
with any number of ranks. Each rank of test_checkpoint.py calls these functions."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from comparison import assert_close
from distributed.parallel_cases import batch, perceptron, step
from distributed.sharding_cases import sharded
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.parallel import DistributedDataParallel

MODELS = {
    "replicated": lambda device: DistributedDataParallel(perceptron(device)),
    "sharded": sharded,
}


def _training(name: str, device: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = MODELS[name](device)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def _state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict:
    of_model, of_optimizer = get_state_dict(model, optimizer)
    return {"model": of_model, "optimizer": of_optimizer}


def _values(model: nn.Module) -> list[torch.Tensor]:
    values = []
    for parameter in model.parameters():
        whole = getattr(parameter, "full_tensor", lambda p=parameter: p)()
        values.append(whole.detach().clone().cpu())
    return values


def save(rank: int, folder: str) -> None:
    """Saves checkpoints after a step: synchronously, and while the next step runs."""
    warnings.simplefilter("ignore")
    savers = dist.new_group()  # concurrent with the next step's collectives
    for name, device in itertools.product(MODELS, ("cpu", "lazy")):
        model, optimizer = _training(name, device)
        step(model, optimizer, *batch(device))
        state = _state(model, optimizer)
        place = str(Path(folder) / f"{name} {device}")
        checkpoint.save(state, checkpoint_id=place)
        saved = checkpoint.async_save(
            state, checkpoint_id=place + " async", process_group=savers
        )
        step(model, optimizer, *batch(device))
        saved.result()


def load(rank: int, folder: str) -> None:
    """Loads the checkpoints. Asserts that the next step is the same for all combinations of
    saving and loading devices."""
    warnings.simplefilter("ignore")
    for name in MODELS:
        after = {}
        for saved, device in itertools.product(
            ("cpu", "lazy", "lazy async"), ("cpu", "lazy")
        ):
            model, optimizer = _training(name, device)
            untrained = _values(model)
            state = _state(model, optimizer)
            checkpoint.load(state, checkpoint_id=str(Path(folder) / f"{name} {saved}"))
            set_state_dict(
                model,
                optimizer,
                model_state_dict=state["model"],
                optim_state_dict=state["optimizer"],
            )
            loaded = _values(model)
            assert not any(map(torch.equal, loaded, untrained))
            dist.barrier()
            step(model, optimizer, *batch(device))
            after[saved, device] = [*loaded, *_values(model)]
        for case, values in after.items():
            what = f"{name}, {case}: values"
            assert_close(values, after["cpu", "cpu"], 1e-5, 1e-6, what)
