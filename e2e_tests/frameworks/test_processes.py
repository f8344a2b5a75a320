"""DataLoader, pinned memory, DataParallel, ensembles and spawned processes work on device
lazy."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from comparison import assert_close
from subprocesses import run_python
from torch import nn
from torch.func import functional_call, stack_module_state, vmap
from torch.utils.data import DataLoader, TensorDataset

DATA = TensorDataset(torch.arange(24.0).view(12, 2))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pin_memory", [False, True])
def test_data_loader(workers: int, pin_memory: bool) -> None:
    loader = DataLoader(DATA, 4, num_workers=workers, pin_memory=pin_memory)
    batches = [x.to("lazy", non_blocking=True) * 2 for (x,) in loader]
    assert torch.cat(batches).tolist() == (DATA.tensors[0] * 2).tolist()


def test_spawned_workers(tmp_path: Path) -> None:
    program = """
import torch
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    torch.ones(2, device="lazy").sum().item()  # forked ones couldn't start now
    data = TensorDataset(torch.arange(8.0))
    loader = DataLoader(data, 4, num_workers=1, multiprocessing_context="spawn")
    print([x.to("lazy").sum().item() for (x,) in loader])
"""
    result = run_python(program, file=tmp_path / "program.py")
    assert result.stdout.strip() == "[6.0, 22.0]"


def test_a_spawned_process_gets_a_copy(tmp_path: Path) -> None:
    program = """
import torch
import torch.multiprocessing as processes
def work(queue, model, answers):
    x = queue.get()
    answers.put(model(x).sum().item())
if __name__ == "__main__":
    spawn = processes.get_context("spawn")
    queue, answers = spawn.Queue(), spawn.Queue()
    model = torch.nn.Linear(3, 2).to("lazy")
    x = torch.ones(4, 3, device="lazy")
    process = spawn.Process(target=work, args=(queue, model, answers))
    process.start()
    queue.put(x)
    assert abs(answers.get() - model(x).sum().item()) < 1e-5
    process.join()
    print(process.exitcode)
"""
    assert run_python(program, file=tmp_path / "program.py").stdout.strip() == "0"


def test_shared_memory_is_rejected_by_name() -> None:
    with pytest.raises(RuntimeError, match="share a copy"):
        nn.Linear(2, 2).to("lazy").share_memory()


def test_data_parallel_on_one_device() -> None:
    torch.manual_seed(0)
    model = nn.Linear(2, 3)
    x = torch.randn(4, 2)
    expected = model(x)
    parallel = nn.DataParallel(model.to("lazy"))
    result = parallel(x.to("lazy"))
    result.sum().backward()
    assert_close(result, expected)
    assert model.weight.grad.device.type == "lazy"


def test_an_ensemble() -> None:
    models = [nn.Linear(4, 2) for _ in range(3)]
    x = torch.randn(5, 4)
    expected = torch.stack([model(x) for model in models])
    skeleton = nn.Linear(4, 2).to("meta")
    parameters, buffers = stack_module_state([model.to("lazy") for model in models])

    def compute(parameters, buffers, x):
        return functional_call(skeleton, (parameters, buffers), (x,))

    result = vmap(compute, in_dims=(0, 0, None))(parameters, buffers, x.to("lazy"))
    assert_close(result, expected)
