"""torch.accelerator is device lazy in programs that use the device."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from subprocesses import run_python

WAYS = {
    "a tensor": "x = torch.ones(2, device='lazy')",
    "the default device": "torch.set_default_device('lazy')",
    "the option": "torch_ltc.config.accelerator = True",
}


@pytest.mark.parametrize("way", WAYS)
def test_who_uses_the_device_has_an_accelerator(way: str) -> None:
    program = f"""
import torch, torch_ltc
print(torch.accelerator.current_accelerator(), torch.accelerator.is_available())
{WAYS[way]}
print(torch.accelerator.current_accelerator(), torch.accelerator.device_count())
"""
    # torch's CUDA build calls CUDA the accelerator even without a GPU.
    own = "None" if torch.version.cuda is None else "cuda"
    assert run_python(program).stdout.split() == [own, "False", "lazy", "1"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("has_gpu", [False, True])
def test_build_for_cuda(has_gpu: bool, way: str) -> None:
    """A CUDA build calls CUDA the accelerator even without a GPU. Device lazy becomes the
    accelerator when a program uses it; with a GPU, creating a tensor isn't enough."""
    program = f"""
import torch
torch._C._accelerator_getAccelerator = lambda: torch.device("cuda")
torch.cuda.is_available = lambda: {has_gpu}
import torch_ltc
torch_ltc._backend.load()
print(torch.accelerator.current_accelerator())
{WAYS[way]}
print(torch.accelerator.current_accelerator())
"""
    expected = "cuda" if has_gpu and way == "a tensor" else "lazy"
    result = run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.stdout.split() == ["cuda", expected]


def test_the_environment() -> None:
    program = "import torch; print(torch.accelerator.current_accelerator())"
    assert run_python(program, TORCH_LTC_ACCELERATOR="1").stdout.strip() == "lazy"


@pytest.fixture
def tensor() -> torch.Tensor:
    return torch.ones(3, device="lazy") + 1


def test_its_functions(tensor: torch.Tensor) -> None:
    accelerator = torch.accelerator
    assert accelerator.current_accelerator(check_available=True).type == "lazy"
    assert accelerator.current_device_index() == 0
    accelerator.set_device_index("lazy:0")
    with accelerator.device_index(0):
        pass
    assert torch.float32 in accelerator.get_device_capability()["supported_dtypes"]
    torch.ones(1000, device="lazy").sum().item()
    assert 0 < accelerator.memory_allocated() <= accelerator.max_memory_allocated()
    assert accelerator.memory_reserved() >= accelerator.memory_allocated()
    free, total = accelerator.get_memory_info()
    assert 0 < free <= total
    accelerator.reset_peak_memory_stats()
    accelerator.empty_cache()
    assert tensor.tolist() == [2.0] * 3


@pytest.mark.parametrize(
    "wait",
    [
        lambda: torch.accelerator.synchronize(),
        lambda: torch.accelerator.synchronize("lazy"),
        lambda: torch.accelerator.current_stream().synchronize(),
    ],
)
def test_waiting_computes(wait, tensor: torch.Tensor) -> None:
    wait()
    before = torch_ltc.metrics()["executions"]
    assert tensor.tolist() == [2.0] * 3
    assert torch_ltc.metrics()["executions"] == before


@pytest.mark.parametrize("device", [1, "lazy:1", "cuda"])
def test_other_devices(device, tensor: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="lazy"):
        torch.accelerator.set_device_index(
            torch.device(device, 0) if device == "cuda" else device
        )


def test_host_memory_needs_no_pinning(tensor: torch.Tensor) -> None:
    x = torch.ones(2)
    assert x.pin_memory() is x


def test_torch_compile_of_cpu_tensors_where_lazy_is_the_accelerator() -> None:
    """torch.compile compiles functions of CPU tensors while device lazy is the accelerator,
    whose stream the guards query."""
    program = """
        import torch
        kept = torch.ones(2, device="lazy")
        assert torch.accelerator.current_accelerator().type == "lazy"
        compiled = torch.compile(lambda x: x.sin() + 1, backend="eager")
        x = torch.randn(3)
        assert torch.equal(compiled(x), x.sin() + 1)
        assert torch.equal(compiled(torch.ones(5)), torch.ones(5).sin() + 1)
    """
    run_python(program)
