"""With `dynamic_shapes`, export and export_step create programs for all sizes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_ltc
from comparison import assert_close
from peers import IREE, TORCH_MLIR
from subprocesses import run_python
from torch import nn
from torch.export import Dim
from torch_ltc._export.manifest import manifest_from_bytes, read_manifest

batch, length = Dim("batch"), Dim("length")


class Text(nn.Module):
    """Embedding, mean over the words, classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.out = nn.Linear(8, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.words(ids).mean(1).relu()).log_softmax(1)


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * 16, 5),
    )


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3)
    )


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


Case = tuple[Callable[[], nn.Module], Callable[..., torch.Tensor], Any, list[Any]]
CASES: dict[str, Case] = {
    "mlp": (mlp, lambda b: torch.randn(b, 6), ({0: batch},), [(5,), (2,), (31,)]),
    "cnn": (
        cnn,
        lambda b: torch.randn(b, 1, 8, 8),
        ({0: batch},),
        [(4,), (3,), (17,)],
    ),
    "encoder": (
        encoder,
        lambda b, n: torch.randn(b, n, 8),
        ({0: batch, 1: length},),
        [(3, 9), (2, 17), (6, 4)],
    ),
    "text": (
        Text,
        lambda b, n: torch.randint(0, 30, (b, n)),
        ({0: batch, 1: length},),
        [(4, 7), (2, 12), (9, 3)],
    ),
}


def exported_case(name: str) -> tuple[nn.Module, torch_ltc.ExportedProgram]:
    make, inputs, shapes, sizes = CASES[name]
    torch.manual_seed(0)
    model = make().eval()
    example = (inputs(*sizes[0]),)
    return model, torch_ltc.export(model, example, dynamic_shapes=shapes)


def with_argument(
    exported: torch_ltc.ExportedProgram, argument: torch.Tensor
) -> list[torch.Tensor]:
    return [
        argument if row["role"] == "argument" else value
        for row, value in zip(exported.inputs, exported.values)
    ]


@pytest.mark.parametrize("name", CASES)
def test_one_program_at_three_sizes(name: str) -> None:
    model, exported = exported_case(name)
    assert "torch.symbolic_int" in exported.text
    _, inputs, _, sizes = CASES[name]
    for size in sizes:
        argument = inputs(*size)
        result = exported.run(with_argument(exported, argument))[0]
        assert_close(result, model(argument), rtol=1e-4, atol=1e-5)


RUN_IREE = """
import sys, torch
import iree.compiler.tools, iree.runtime
text, rows = open(sys.argv[1]).read(), torch.load(sys.argv[2])
code = iree.compiler.tools.compile_str(text, input_type="torch",
    target_backends=["llvm-cpu"], extra_args=["--iree-llvmcpu-target-cpu=host",
    "--iree-input-demote-f64-to-f32=false",
    "--iree-stream-resource-alias-mutable-bindings", "--iree-opt-generalize-matmul"])
config = iree.runtime.Config(device=iree.runtime.get_device("local-task"))
context = iree.runtime.SystemContext(config=config)
module = iree.runtime.VmModule.copy_buffer(context.instance, code)
context.add_vm_module(module)
function = context.modules[module.name][sys.argv[4]]
results = []
for row in rows:
    found = function(*[v.numpy() if hasattr(v, "numpy") else v for v in row])
    found = found if isinstance(found, tuple) else (found,)
    results.append(torch.from_numpy(found[0].to_host()))
torch.save(results, sys.argv[3])
"""


# Excludes the encoder: IREE 3.13 computes wrong results for it, although torch_ltc's
# runtime computes correct ones from the same text with its sizes bound.
@pytest.mark.parametrize("name", ["mlp", "cnn", "text"])
def test_iree_runs_it_at_three_sizes(name: str, tmp_path: Path) -> None:
    path = IREE.python_path()
    model, exported = exported_case(name)
    _, inputs, _, sizes = CASES[name]
    arguments = [inputs(*size) for size in sizes]
    (tmp_path / "program.mlir").write_text(exported.text)
    numbers = [scalar["value"] for scalar in exported.scalars]
    rows = [with_argument(exported, argument) + numbers for argument in arguments]
    torch.save(rows, tmp_path / "rows.pt")
    files = [str(tmp_path / name) for name in ("program.mlir", "rows.pt", "out.pt")]
    command = ["run.py", *files, exported.entry]
    run_python(f"import sys; sys.argv = {command!r}\n" + RUN_IREE, PYTHONPATH=path)
    for result, argument in zip(torch.load(files[2]), arguments):
        assert_close(result, model(argument), rtol=1e-4, atol=1e-5)


LOWER = """
import sys
from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.passmanager import PassManager
PIPELINE = ("builtin.module(func.func(torch-decompose-complex-ops),"
            "torch-backend-to-linalg-on-tensors-backend-pipeline)")
with ir.Context() as context:
    torch.register_dialect(context)
    module = ir.Module.parse(sys.stdin.read())
    PassManager.parse(PIPELINE).run(module.operation)
    print(module)
"""


@pytest.mark.parametrize("name", CASES)
def test_torch_mlir_lowers_it(name: str) -> None:
    """torch-mlir lowers the program to linalg. Ops that only state relations between sizes
    are removed first, because the lowering doesn't support them."""
    _, exported = exported_case(name)
    lines = exported.text.splitlines()
    stated = re.compile(r"torch\.(symbolic_int|bind_symbolic_shape)\b")
    lowered = subprocess.run(
        [TORCH_MLIR.python(), "-c", LOWER],
        input="\n".join(line for line in lines if not stated.search(line)),
        capture_output=True,
        text=True,
    )
    assert lowered.returncode == 0, lowered.stderr[-2000:]
    assert "tensor<?x" in lowered.stdout and "torch." not in lowered.stdout


# -- relations and ranges ------------------------------------------------------


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 + y


def test_equal_dims() -> None:
    shapes = {"x": {0: batch}, "y": {0: batch}}
    x = torch.randn(4, 3)
    exported = torch_ltc.export(add, (x, x), dynamic_shapes=shapes)
    assert [row["sizes"] for row in exported.inputs] == [["batch", "3"]] * 2
    x, y = torch.randn(7, 3), torch.randn(7, 3)
    assert_close(exported.run([x, y])[0], add(x, y))
    with pytest.raises(ValueError, match=r"Size 0 of 'arg1' is 6, but must be 7"):
        exported.run([x, y[:6]])


def test_dims_that_must_be_equal() -> None:
    shapes = ({0: Dim("a")}, {0: Dim("b")})
    x = torch.randn(4, 3)
    with pytest.raises(ValueError, match="arg") as caught:
        torch_ltc.export(add, (x, x), dynamic_shapes=shapes)
    message = str(caught.value)
    assert "Size 0 of 'arg0' (a) must equal size 0 of 'arg1' (b)" in message
    assert "at test_dynamic_shapes.py:" in message and "\n" not in message


def test_dims_said_equal_that_are_not() -> None:
    shapes = ({0: batch}, {0: batch})
    with pytest.raises(ValueError, match="batch, as size 0 of 'arg0' is, but they are"):
        torch_ltc.export(add, (torch.randn(4, 3), torch.randn(1, 3)), (), **_of(shapes))


def _of(shapes: Any) -> dict[str, Any]:
    return {"dynamic_shapes": shapes}


def fixed(x: torch.Tensor) -> torch.Tensor:
    return x.view(4, 3) + 1


def test_a_dim_that_is_a_constant() -> None:
    x = torch.randn(4, 3)
    for dim in (batch, Dim.DYNAMIC):
        with pytest.raises(ValueError, match="Size 0 of 'arg0' can't vary") as caught:
            torch_ltc.export(fixed, (x,), **_of(({0: dim},)))
        assert "at test_dynamic_shapes.py:" in str(caught.value)
    with pytest.raises(ValueError, match="No size of the program varies"):
        torch_ltc.export(fixed, (x,), **_of(({0: Dim.AUTO},)))


def test_other_code_at_other_sizes() -> None:
    def branch(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] == 4 else x.relu()

    with pytest.raises(
        ValueError, match=r"Size 0 of 'arg0' can't vary.*ops of the program depend"
    ):
        torch_ltc.export(branch, (torch.randn(4, 3),), **_of(({0: batch},)))


def test_hints() -> None:
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    shapes = ({0: Dim.AUTO, 1: Dim.STATIC}, {0: Dim.DYNAMIC})
    exported = torch_ltc.export(add, (x, y), **_of(shapes))
    assert [row["sizes"] for row in exported.inputs] == [["s0", "3"]] * 2


def test_ranges() -> None:
    bounded = Dim("bounded", min=3, max=9)
    exported = torch_ltc.export(mlp(), (torch.randn(4, 6),), **_of(({0: bounded},)))
    assert exported.symbols == [{"name": "bounded", "min": 3, "max": 9}]
    assert "{min_val = 3, max_val = 9}" in exported.text
    for size in (2, 10):
        values = with_argument(exported, torch.randn(size, 6))
        with pytest.raises(ValueError, match=r"Size 0 of 'arg0' is .* from 3 to 9"):
            exported.run(values)
    with pytest.raises(
        ValueError, match=r"Size 0 of 'arg0' is 12, but bounded is from"
    ):
        torch_ltc.export(mlp(), (torch.randn(12, 6),), **_of(({0: bounded},)))


def test_a_slice_bounds_the_range() -> None:
    exported = torch_ltc.export(
        lambda x: x[:5] * 2, (torch.randn(8, 3),), **_of(({0: batch},))
    )
    assert exported.symbols[0]["min"] == 5
    with pytest.raises(ValueError, match="Size 0 of 'arg0' can't be 3"):
        torch_ltc.export(
            lambda x: x[:5] * 2,
            (torch.randn(8, 3),),
            **_of(({0: Dim("small", min=3)},)),
        )


def test_derived_dims() -> None:
    def halves(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x]) + y

    shapes = ({0: batch}, {0: 2 * batch})
    exported = torch_ltc.export(
        halves, (torch.randn(4, 3), torch.randn(8, 3)), **_of(shapes)
    )
    x, y = torch.randn(5, 3), torch.randn(10, 3)
    assert_close(exported.run([x, y])[0], halves(x, y))
    with pytest.raises(ValueError, match="Size 0 of 'arg1' is 9, but must be"):
        exported.run([x, y[:9]])


def test_forms_of_dynamic_shapes() -> None:
    def total(pair: tuple[torch.Tensor, torch.Tensor], scale: torch.Tensor) -> Any:
        return (pair[0] + pair[1]).sum(0) * scale

    x = torch.randn(4, 3)
    for shapes in (
        (({0: batch}, {0: batch}), None),
        {"pair": ([batch, None], [batch, Dim.STATIC]), "scale": None},
    ):
        exported = torch_ltc.export(total, ((x, x), torch.ones(3)), **_of(shapes))
        assert exported.symbols[0]["name"] == "batch"


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ("x", "must be a dict by argument names or a tuple"),
        (({0: batch},), "has 1 entries for 2 arguments"),
        ({"z": {0: batch}}, "names 'z', but the arguments are x, y"),
        (({5: batch}, None), "names dim 5 of 'arg0', which has 2 dims"),
        (({0: "batch"}, None), "it must be a Dim"),
        (({0: 7}, None), "is 7, but it is 4"),
    ],
)
def test_wrong_specifications(shapes: Any, message: str) -> None:
    x = torch.randn(4, 3)
    with pytest.raises(ValueError, match=message):
        torch_ltc.export(add, (x, x), dynamic_shapes=shapes)


@pytest.mark.parametrize("dialect", ["linalg", "tosa", "stablehlo"])
def test_other_dialects_are_rejected(dialect: str) -> None:
    with pytest.raises(ValueError, match=f"dialect torch, but not in {dialect}"):
        torch_ltc.export(
            mlp(), (torch.randn(4, 6),), dialect=dialect, **_of(({0: batch},))
        )


def test_files(tmp_path: Path) -> None:
    _, exported = exported_case("mlp")
    folder = exported.save(tmp_path / "program")
    manifest = read_manifest(folder)
    assert manifest["symbols"] == exported.symbols
    message = manifest_from_bytes((folder / "manifest.pb").read_bytes())
    assert message["symbols"] == exported.symbols
    assert ["batch", "6"] in [row["sizes"] for row in message["inputs"]]
    assert b"symbolic_int" in exported.bytecode


# -- a training step -----------------------------------------------------------


def trained(device: str) -> tuple[nn.Module, Any, Callable[..., torch.Tensor]]:
    torch.manual_seed(1)
    model = mlp().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def test_a_training_step_at_three_sizes() -> None:
    model, optimizer, step = trained("lazy")
    eager, _, eager_step = trained("cpu")

    def data(size: int) -> tuple[torch.Tensor, torch.Tensor]:
        torch.manual_seed(size)
        return torch.randn(size, 6), torch.randint(0, 3, (size,))

    exported = torch_ltc.export_step(
        step,
        data(8),
        module=model,
        optimizer=optimizer,
        **_of(({0: batch}, {0: batch})),
    )
    eager_step(*data(8))
    names = [row["name"] for row in exported.inputs]
    values = exported.values
    for size in (8, 5, 13):
        x, y = data(size)
        values[names.index("arg0")], values[names.index("arg1")] = x, y
        results = exported.run(values)
        loss = eager_step(x, y)
        assert_close(results[0], loss, rtol=1e-4, atol=1e-5)
        values = exported.next(values, results)
    for name, parameter in eager.named_parameters():
        assert_close(values[names.index(name)], parameter, rtol=1e-3, atol=2e-4)


def test_training_continues_after_the_export() -> None:
    """Only the warm-up and the traced step change the model and the optimizer, not the
    traces at other sizes."""
    model, optimizer, step = trained("lazy")
    eager, _, eager_step = trained("cpu")
    data = torch.randn(8, 6), torch.randint(0, 3, (8,))
    torch_ltc.export_step(
        step, data, module=model, optimizer=optimizer, **_of(({0: batch}, {0: batch}))
    )
    for _ in range(2):
        eager_step(*data)
    lazy = tuple(tensor.to("lazy") for tensor in data)
    for _ in range(3):
        assert_close(step(*lazy), eager_step(*data))
    assert_close(
        list(model.parameters()), list(eager.parameters()), rtol=1e-4, atol=1e-5
    )
