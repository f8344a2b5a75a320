"""Backends in Python: what they receive, which results are allowed, and their errors."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import torch
import torch_ltc
from comparison import assert_close
from subprocesses import run_python
from torch import nn
from torch_ltc.program import Program


@pytest.fixture(autouse=True)
def own_compiler_afterwards():
    yield
    for name, stage in torch_ltc.backends().items():
        if stage != "installed":
            torch_ltc.unregister_backend(name)
    assert torch_ltc.config.backend == ""


def relay(program: Program):
    """Compiles with torch_ltc's own compiler, through public interfaces only."""
    return torch_ltc.compile_mlir(program.text)


def error_of(function: Callable[[], object]) -> str:
    """Returns the text of the error that `function` raises. Clears the error's frames,
    because they hold tensors whose pending ops would be part of the next step."""
    try:
        function()
    except RuntimeError as error:
        traceback.clear_frames(error.__traceback__)
        return str(error)
    raise AssertionError("no error was raised")


def loss_after_training(steps: int = 3) -> float:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))
    inputs, classes = torch.randn(8, 6), torch.randint(2, (8,))
    model = model.to("lazy")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs.to("lazy")), classes.to("lazy"))
        loss.backward()
        optimizer.step()
    return loss.item()


@pytest.mark.parametrize("stage", ["torch-raw", "torch", "linalg"])
def test_each_stage_trains_as_our_compiler(stage: str) -> None:
    expected = loss_after_training()
    programs: list[Program] = []

    def compile(program: Program):
        programs.append(program)
        return relay(program)

    torch_ltc.register_backend("relay", compile, stage=stage)
    with torch_ltc.use_backend("relay"):
        assert loss_after_training() == pytest.approx(expected, rel=1e-5)
    assert programs and all(program.stage == stage for program in programs)
    assert torch_ltc.metrics()["fallback_calls"] == 0 or stage


def test_bytecode_is_the_same_program() -> None:
    expected = loss_after_training()
    torch_ltc.register_backend(
        "bytes", lambda program: torch_ltc.compile_mlir(program.bytecode)
    )
    with torch_ltc.use_backend("bytes"):
        assert loss_after_training() == pytest.approx(expected, rel=1e-5)


def test_what_compile_gets() -> None:
    seen: list[Program] = []

    def compile(program: Program):
        seen.append(program)
        return relay(program)

    torch_ltc.register_backend("look", compile, stage="linalg")
    with torch_ltc.use_backend("look"):
        model = nn.Linear(3, 2, bias=False).to("lazy")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(4, 3).to("lazy")).sum().backward()
            optimizer.step()
        torch_ltc.wait_device_ops()
    program = seen[-1]
    by_name = {spec.name: spec for spec in program.inputs}
    assert by_name["weight"].shape == (2, 3) and by_name["weight"].is_parameter
    assert by_name["weight"].dtype is torch.float32 and by_name["weight"].donatable
    assert not by_name[""].is_parameter
    assert program.scalars == [float]
    assert f"func.func @{program.entry}" in program.text
    assert "ltc." not in program.text.replace("torch_ltc.", ""), "nothing of ours"
    assert "!torch" in program.text_at("torch")


def test_a_convolution_reaches_linalg_without_library_calls() -> None:
    expected = torch.randn(2, 3, 6, 6)
    layer = nn.Conv2d(3, 4, 3, padding=1, stride=2)
    eager = layer(expected).detach()
    torch_ltc.register_backend("relay", relay, stage="linalg")
    with torch_ltc.use_backend("relay"):
        result = layer.to("lazy")(expected.to("lazy")).detach().cpu()
    assert_close(result, eager, rtol=1e-5, atol=1e-5)


def test_programs_are_compiled_once_each() -> None:
    count = []
    torch_ltc.register_backend("count", lambda p: count.append(p) or relay(p))
    with torch_ltc.use_backend("count"):
        for _ in range(4):
            (torch.ones(5, device="lazy") * 3).cos().sum().item()
    assert len(count) == 1
    torch_ltc.register_backend("count", lambda p: count.append(p) or relay(p))
    with torch_ltc.use_backend("count"):
        (torch.ones(5, device="lazy") * 3).cos().sum().item()
    assert len(count) == 2, "a new registration gets its own programs"


def plus_one(kind: str):
    """Returns a function that returns x + 1 in the allowed form `kind`."""
    if kind == "tensor":
        return lambda x: [x + 1]
    if kind == "lone tensor":
        return lambda x: x + 1
    if kind == "numpy":
        return lambda x: (x.numpy() + 1,)
    if kind == "transposed numpy":
        return lambda x: [numpy.asfortranarray(x.numpy() + 1)]

    def write(x, out):
        torch.add(x, 1, out=out[0])

    return write


@pytest.mark.parametrize(
    "kind", ["tensor", "lone tensor", "numpy", "transposed numpy", "out"]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_results(kind: str, dtype: torch.dtype) -> None:
    torch_ltc.register_backend("plus", lambda program: plus_one(kind))
    x = torch.arange(6, dtype=dtype).reshape(2, 3)
    with torch_ltc.use_backend("plus"):
        result = x.to("lazy").neg().cpu()
    assert torch.equal(result, x + 1)


def test_inputs_are_the_memory_itself() -> None:
    pointers = []

    def run(x):
        pointers.append((x.data_ptr(), x.numpy().ctypes.data))
        return x.neg()

    torch_ltc.register_backend("pointers", lambda program: run)
    with torch_ltc.use_backend("pointers"):
        x = torch.ones(4).to("lazy")
        for _ in range(2):
            x.neg().cpu()
    assert len({pointer for pair in pointers for pointer in pair}) == 1


BAD_RESULTS = {
    "count": (lambda x: [x, x], "it returned 2 results, expected 1"),
    "shape": (lambda x: x[:1], r"result 0 has shape \[1\].*expected \[3\]"),
    "dtype": (lambda x: x.double(), "dtype torch.float64, expected.*torch.float32"),
    "type": (lambda x: ["no"], "a result is a str, expected a CPU tensor"),
    "device": (lambda x: torch.ones(3, device="lazy"), "a result is a tensor on 'lazy"),
    # This is an error, because the step would wait for itself.
    "lazy": (
        lambda x: x.to("lazy").exp().cpu(),
        "'lazy' can't be used by code that runs in",
    ),
    "exit": (lambda x: sys.exit(3), r"failed to run program \w+: SystemExit: 3\."),
    "error": (lambda x: 1 / 0, r"ZeroDivisionError.*test_register_backend.py"),
}


@pytest.mark.parametrize("case", BAD_RESULTS)
def test_bad_runs_are_rejected(case: str) -> None:
    function, sentence = BAD_RESULTS[case]
    torch_ltc.register_backend("bad", lambda program: function)
    with torch_ltc.use_backend("bad"):
        text = error_of(lambda: torch.ones(3).to("lazy").exp().cpu())
    assert re.search(f"(?s)Backend 'bad'.*{sentence}", text)
    folder = Path(text.split("saved in ")[1].split(".\n")[0])
    assert "torch.aten.exp" in (folder / "program.mlir").read_text()
    assert torch.equal(torch.load(folder / "inputs.pt")["inputs"][0], torch.ones(3))


def test_an_error_of_compile_is_shown_as_its_own() -> None:
    def compile(program: Program):
        raise NotImplementedError("no exp here")

    torch_ltc.register_backend("bad", compile)
    with torch_ltc.use_backend("bad"):
        text = error_of(lambda: torch.ones(3).to("lazy").exp().cpu())
    assert "Backend 'bad' failed to compile program" in text
    assert "NotImplementedError: no exp here" in text
    assert "in compile" in text and "raise NotImplementedError" in text
    assert "frame #" not in text, "no C++ backtrace"


def trained(steps: int, weight: torch.Tensor) -> list[torch.Tensor]:
    optimizer = torch.optim.SGD([weight], lr=0.5)
    losses = []
    for _ in range(steps):
        weight.grad = None
        loss = (weight * 2).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


@pytest.mark.parametrize("failing_call", [1, 2, 3])
def test_after_an_error_all_else_goes_on(failing_call: int) -> None:
    """After a backend's error, weights have the values of the last successful step, and
    later steps run."""
    calls = []

    def compile(program: Program):
        run = relay(program)

        def sometimes(*arguments):
            calls.append(0)
            if len(calls) >= failing_call:
                raise KeyError("trouble")
            return run(*arguments)

        return sometimes

    torch_ltc.register_backend("sometimes", compile)
    weight = torch.nn.Parameter(torch.ones(3).to("lazy"))
    torch_ltc.mark_step()
    with torch_ltc.use_backend("sometimes"):
        losses = trained(5, weight)
        text = error_of(lambda: [loss.item() for loss in losses])
    assert "trouble" in text
    for i in range(2):
        assert torch.ones(4, device="lazy").mul(1.5 + i).sum().item() == 6 + 4 * i
    expected = torch.nn.Parameter(torch.ones(3))
    trained(failing_call - 1, expected)
    assert_close(weight, expected)
    trained(2, weight)
    trained(2, expected)
    assert_close(weight, expected)


@pytest.mark.parametrize(
    "leave",
    [
        lambda: torch_ltc.use_backend(None),
        lambda: torch_ltc.unregister_backend("never"),
        lambda: setattr(torch_ltc.config, "backend", ""),
    ],
    ids=["use_backend", "unregister_backend", "config"],
)
def test_a_backend_that_cannot_compile_can_be_left(leave: Callable) -> None:
    def compile(program: Program):
        raise NotImplementedError("no products")

    torch_ltc.register_backend("never", compile)
    weight = torch.nn.Parameter(torch.ones(3).to("lazy"))
    torch_ltc.mark_step()
    torch_ltc.use_backend("never")
    assert "no products" in error_of(lambda: trained(1, weight))
    leave()
    assert torch_ltc.config.backend == ""
    expected = torch.nn.Parameter(torch.ones(3))
    trained(1, expected)
    # The failed step left the update pending; torch_ltc's own compiler runs it.
    assert_close(weight, expected)


def test_the_end_of_a_block_raises_what_was_not_raised_yet() -> None:
    def compile(program: Program):
        raise NotImplementedError("no sines")

    torch_ltc.register_backend("never", compile)

    def block() -> None:
        nonlocal y
        with torch_ltc.use_backend("never"):
            y = torch.ones(3).to("lazy").sin()

    y = None
    assert "no sines" in error_of(block)
    assert torch_ltc.config.backend == ""
    assert_close(y, torch.ones(3).sin())

    def twice() -> None:
        nonlocal y
        with torch_ltc.use_backend("never"):
            y = torch.ones(3).to("lazy").sin().sin()
            assert "no sines" in error_of(torch_ltc.mark_step)

    twice()  # the end of the block doesn't raise the same error again
    assert_close(y, torch.ones(3).sin().sin())


def test_unsupported_ops_run_eagerly() -> None:
    torch_ltc.register_backend("less", relay, unsupported_ops=["aten::cos"])
    torch_ltc.reset_metrics()
    with torch_ltc.use_backend("less"):
        result = torch.ones(3).to("lazy").cos().exp().cpu()
    assert_close(result, torch.ones(3).cos().exp())
    (row,) = torch_ltc.fallbacks()
    assert row["op"] == "aten::cos" and "backend" in row["reason"]
    assert "test_register_backend.py" in row["location"]
    torch_ltc.reset_metrics()
    torch.ones(3).to("lazy").cos().cpu()
    assert not torch_ltc.fallbacks(), "only while the backend is selected"


def test_unsupported_ops_that_are_decomposed_need_no_fallback() -> None:
    ops: list[str] = []

    def compile(program: Program):
        ops.append(program.text)
        return relay(program)

    torch_ltc.register_backend("less", compile, unsupported_ops=["aten._softmax"])
    torch_ltc.reset_metrics()
    with torch_ltc.use_backend("less"):
        torch.ones(3).to("lazy").softmax(0).cpu()
    assert not torch_ltc.fallbacks() and "aten._softmax" not in ops[0]


def test_unsupported_op_from_a_decomposition_is_named() -> None:
    torch_ltc.register_backend("less", relay, unsupported_ops=["aten.amax"])
    with torch_ltc.use_backend("less"):
        text = error_of(lambda: torch.ones(3).to("lazy").softmax(0).cpu())
    assert "doesn't support torch.aten.amax" in text


def test_legal_ops_stay_whole() -> None:
    texts: list[str] = []

    def compile(program: Program):
        texts.append(program.text)
        return lambda x: x.softmax(0)

    torch_ltc.register_backend("more", compile, legal_ops=["aten._softmax"])
    with torch_ltc.use_backend("more"):
        result = torch.arange(3.0).to("lazy").softmax(0).cpu()
    assert_close(result, torch.arange(3.0).softmax(0))
    assert "torch.aten._softmax" in texts[0]


def test_bad_registrations_are_sentences() -> None:
    with pytest.raises(ValueError, match=r"'assembly'.*torch-raw, torch, linalg"):
        torch_ltc.register_backend("x", relay, stage="assembly")
    with pytest.raises(TypeError, match="needs a function"):
        torch_ltc.register_backend("x", "nonsense")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no backend 'x'"):
        torch_ltc.use_backend("x")
    torch_ltc.register_backend("x", lambda program: None)
    with torch_ltc.use_backend("x"):
        text = error_of(lambda: torch.ones(3).to("lazy").exp().cpu())
    assert "must return a function, but returned a NoneType" in text


def test_scopes_nest_and_end_the_step() -> None:
    torch_ltc.register_backend("a", relay)
    torch_ltc.register_backend("b", relay)
    with torch_ltc.use_backend("a"):
        kept = torch.ones(3, device="lazy").sinh()
        with torch_ltc.use_backend("b"):
            assert torch_ltc.config.backend == "b"
            assert torch_ltc.metrics()["memory"]["pending_ops"] == 0
        with torch_ltc.use_backend(None):
            assert torch_ltc.config.backend == ""
        assert torch_ltc.config.backend == "a"
    assert kept.cpu()[0].item() == pytest.approx(1.1752012)


PACKAGE = """
import torch_ltc

def register():
    torch_ltc.register_backend("installed", lambda p: torch_ltc.compile_mlir(p.text))
    print("registered")

def forget():
    pass
"""


def install_package(folder: Path, function: str) -> None:
    (folder / "package_with_backend.py").write_text(PACKAGE)
    info = folder / "package_with_backend-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: package_with_backend\nVersion: 1\n"
    )
    (info / "entry_points.txt").write_text(
        f"[torch_ltc.backends]\ninstalled = package_with_backend:{function}\n"
    )


USE = """
import sys
sys.path.insert(0, {folder!r})
import torch, torch_ltc
print(torch_ltc.backends())
print((torch.ones(3, device="lazy") * 2).sum().item())
"""


def test_an_installed_backend_is_found_by_name(tmp_path: Path) -> None:
    install_package(tmp_path, "register")
    result = run_python(USE.format(folder=str(tmp_path)), TORCH_LTC_BACKEND="installed")
    assert "'installed': 'installed'" in result.stdout
    assert "registered" in result.stdout and "6.0" in result.stdout


def test_a_package_that_registers_nothing_is_named(tmp_path: Path) -> None:
    install_package(tmp_path, "forget")
    result = run_python(
        USE.format(folder=str(tmp_path)), check=False, TORCH_LTC_BACKEND="installed"
    )
    assert result.returncode != 0
    assert "package_with_backend" in result.stderr
    assert "registered no backend" in result.stderr


def test_an_unknown_name_of_the_environment_is_a_sentence() -> None:
    program = "import torch; print(torch.ones(2, device='lazy').exp().sum().item())"
    result = run_python(program, check=False, TORCH_LTC_BACKEND="nobody")
    assert result.returncode != 0
    assert "There is no backend 'nobody'" in result.stderr
