"""Lazy tensors can be passed to other libraries (DLPack, numpy) and to other processes."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import torch
import torch_ltc
from subprocesses import run_python

DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.int8,
          torch.uint8, torch.bool)  # fmt: skip
VIEWS = {
    "the tensor": lambda x: x,
    "a slice": lambda x: x[1:, ::2],
    "a transpose": lambda x: x.t(),
    "rank 0": lambda x: x[1, 2],
    "no elements": lambda x: x[:0],
    "a pending result": lambda x: x.flip(0),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", VIEWS)
def test_numpy_reads_without_a_copy(name: str, dtype: torch.dtype) -> None:
    expected = VIEWS[name](torch.arange(12).reshape(3, 4).to(dtype))
    tensor = VIEWS[name](torch.arange(12).reshape(3, 4).to(dtype).to("lazy"))
    array = numpy.from_dlpack(tensor)
    numpy.testing.assert_array_equal(array, expected.numpy())
    if expected.numel():
        assert not array.flags.writeable
        assert array.ctypes.data == tensor.data_ptr(), "the same memory"


def test_an_array_keeps_its_values() -> None:
    """Neither a write nor a step that overwrites the parameter changes the array."""
    parameter = torch.nn.Parameter(torch.ones(1000, device="lazy"))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    array = numpy.from_dlpack(parameter.detach())
    for _ in range(3):
        parameter.grad = torch.ones(1000, device="lazy")
        optimizer.step()
    torch_ltc.wait_device_ops()
    assert (array == 1).all() and parameter.tolist() == [-2.0] * 1000


def test_copies_are_the_receivers_own() -> None:
    x = torch.arange(4.0, device="lazy")
    copies = [
        torch.from_dlpack(x),
        torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)),
        torch.from_dlpack(x, device="cpu"),
        torch.from_dlpack(numpy.from_dlpack(x, copy=True)),
    ]
    for copy in copies:
        assert copy.device.type == "cpu" and copy.tolist() == [0.0, 1.0, 2.0, 3.0]
        copy.zero_()
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_to_the_device() -> None:
    array = numpy.arange(3.0)
    moved = torch.from_dlpack(array, device="lazy")
    assert moved.device.type == "lazy" and moved.dtype == torch.float64
    array[:] = 0
    assert moved.tolist() == [0.0, 1.0, 2.0]
    assert torch.from_dlpack(moved, device="lazy") is moved


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: torch.from_dlpack(x, copy=False), BufferError),
        (lambda x: x.__dlpack__(copy=False), BufferError),
        (lambda x: torch.from_dlpack(x.requires_grad_()), BufferError),
        (lambda x: torch.from_dlpack((x + 1j).conj()), BufferError),
        (lambda x: (x + 1j).conj().__dlpack__(), BufferError),
        (
            lambda x: torch.from_dlpack(numpy.ones(2), device="lazy", copy=False),
            ValueError,
        ),
        (lambda x: numpy.asarray(x), TypeError),
        (lambda x: x.numpy(), TypeError),
    ],
)
def test_rejected_exports(call, error: type) -> None:
    with pytest.raises(error) as caught:
        call(torch.ones(3, device="lazy"))
    assert "\n" not in str(caught.value)


def test_channels_last_is_copied() -> None:
    x = torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last)
    array = numpy.from_dlpack(x.to("lazy"))
    numpy.testing.assert_array_equal(array, x.numpy())
    assert array.strides == x.numpy().strides


def test_devices_of_capsules() -> None:
    x = torch.ones(2, device="lazy")
    assert x.__dlpack_device__() == torch.ones(2).__dlpack_device__()


PROCESSES = """
    import torch, torch.multiprocessing as mp

    def send(queue, back):
        x = torch.arange(3.0, device="lazy") * 2
        queue.put(x)
        queue.put(torch.nn.Parameter(x))
        back.get()  # the sender must live until the receiver has opened the tensors

    def receive(queue, tensor):
        try:
            queue.put((tensor + 1).tolist())
        except RuntimeError as error:
            queue.put(str(error))

    if __name__ == "__main__":
        x = torch.ones(2, device="lazy") + 1
        x.tolist()
        context = mp.get_context("{method}")
        queue, back = context.Queue(), context.Queue()
        process = context.Process(target={target}, args={arguments})
        process.start()
        {body}
        process.join(60)
        print(process.exitcode)
"""


def run_processes(
    folder: Path, method: str, target: str, arguments: str, body: str
) -> list[str]:
    program = PROCESSES.format(
        method=method, target=target, arguments=arguments, body=body
    )
    return run_python(program, 100, file=folder / "main.py").stdout.splitlines()


def test_a_queue_carries_lazy_tensors(tmp_path: Path) -> None:
    body = "a, b = queue.get(), queue.get(); back.put(0); print(a.device, a.tolist(), type(b).__name__, b.device)"
    lines = run_processes(tmp_path, "spawn", "send", "(queue, back)", body)
    assert lines == ["lazy:0 [0.0, 2.0, 4.0] Parameter lazy:0", "0"]


def test_arguments_of_a_process(tmp_path: Path) -> None:
    body = "print(queue.get())"
    lines = run_processes(tmp_path, "spawn", "receive", "(queue, x)", body)
    assert lines == ["[3.0, 3.0]", "0"]


def test_a_forked_process_raises(tmp_path: Path) -> None:
    body = "print(queue.get())"
    sentence, code = run_processes(tmp_path, "fork", "receive", "(queue, x)", body)
    assert "forked" in sentence and "spawn" in sentence and code == "0"


LOADER = """
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Samples(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return torch.full((2,), float(index){device})

    if __name__ == "__main__":
        torch.ones(2, device="lazy").tolist()
        try:
            for batch in DataLoader(Samples(), 4, num_workers=1{options}):
                print(batch.to("lazy").sum().item())
        except RuntimeError as error:
            print([line for line in str(error).splitlines() if "lazy" in line][-1])
"""


@pytest.mark.parametrize("options", ["", ", pin_memory=True"])
def test_a_loader_with_workers(options: str, tmp_path: Path) -> None:
    program = LOADER.format(device="", options=options)
    result = run_python(program, 100, file=tmp_path / "main.py")
    assert result.stdout.split() == ["12.0", "44.0"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_do_not_make_lazy_tensors(method: str, tmp_path: Path) -> None:
    options = f", multiprocessing_context='{method}'"
    program = LOADER.format(device=", device='lazy'", options=options)
    result = run_python(program, 100, file=tmp_path / "main.py")
    (sentence,) = result.stdout.splitlines()
    assert sentence.startswith("RuntimeError: ") and "CPU tensors" in sentence


def test_a_forked_worker_with_lazy_as_default_device(tmp_path: Path) -> None:
    """The worker's error reaches the loop. Pickling a batch happens in a thread of the
    worker whose errors don't."""
    program = """
        import torch
        from torch.utils.data import DataLoader, IterableDataset

        class Samples(IterableDataset):
            def __iter__(self):
                return iter(range(4))

        if __name__ == "__main__":
            torch.set_default_device("lazy")
            torch.ones(2).tolist()
            print(len(list(DataLoader(Samples()))))
            try:
                list(DataLoader(Samples(), num_workers=1))
            except RuntimeError as error:
                print(str(error).splitlines()[-1])
    """
    result = run_python(program, 100, file=tmp_path / "main.py")
    count, sentence = result.stdout.splitlines()
    assert count == "4"
    assert "forked" in sentence and "CPU tensors" in sentence
