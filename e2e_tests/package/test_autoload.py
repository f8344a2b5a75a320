"""`import torch` makes the device available, and no problem of torch_ltc breaks it."""

from __future__ import annotations

import importlib.metadata
import json

import pytest
from subprocesses import run_python
from torch_ltc._backend import torch_version_problem
from torch_ltc.version import REQUIRED_TORCH

# A program in which importing torch_ltc's bindings raises an error.
WITHOUT_BINDINGS = """
    import sys
    class Reject:
        def find_spec(self, name, path=None, target=None):
            if name == "torch_ltc._C":
                raise {error}
    sys.meta_path.insert(0, Reject())
    import torch
    print("sum", torch.ones(3).sum().item(), torch.lazy.is_available() if hasattr(torch, "lazy") else False)
"""


def test_device_without_importing_the_package() -> None:
    program = """
        import torch
        x = torch.ones(3, device="lazy")
        print((x + 1).tolist(), torch.lazy.is_available())
    """
    assert run_python(program).stdout.strip() == "[2.0, 2.0, 2.0] True"


@pytest.mark.parametrize("order", ["torch, torch_ltc", "torch_ltc, torch"])
def test_either_import_order(order: str) -> None:
    program = f"import {order}; print(torch.ones(2, device='lazy').sum().item())"
    assert run_python(program).stdout.strip() == "2.0"


def test_explicit_import_without_autoload() -> None:
    program = """
        import torch
        assert not hasattr(torch, "lazy")
        import torch_ltc
        print(torch.ones(2, device="lazy").sum().item())
    """
    result = run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.stdout.strip() == "2.0"


def test_nothing_heavy_is_imported() -> None:
    program = """
        import sys, torch
        heavy = {"rich", "numpy.testing", "torch._dynamo", "sklearn"} & set(sys.modules)
        assert not heavy, heavy
        assert "libMLIR" not in open("/proc/self/maps").read()
    """
    run_python(program)


def test_one_openmp_runtime() -> None:
    """torch_ltc uses torch's OpenMP runtime: a second one, such as that of the compiler
    that built torch_ltc, would have a second thread pool."""
    program = """
        import re, torch, torch_ltc
        with torch_ltc.config(tier="compile"):
            x = torch.randn(300, 300, device="lazy")
            ((x @ x).relu() + 1).sum().item()
        libraries = open("/proc/self/maps").read()
        assert "libltc_runtime" in libraries
        print(sorted(set(re.findall(r"lib(?:[gi]?omp\\d*)\\b[^/]*\\.so", libraries))))
    """
    assert run_python(program).stdout.strip() == "['libgomp.so']"


# Modules that every `import torch` may load; all others must be imported on first use
# (torch_ltc/__init__.py).
AT_IMPORT = {
    "_C", "_autoload", "_backend", "_diagnostics", "_diagnostics.messages", "_torch_patches", "config",
    "device_module", "metrics", "step", "version",
}  # fmt: skip


def test_only_what_every_program_needs_is_imported() -> None:
    program = """
        import json, os, sys
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        import torch
        before = set(sys.modules)
        import torch_ltc
        print(json.dumps(sorted(set(sys.modules) - before)))
    """
    added = json.loads(run_python(program).stdout)
    ours = {name.removeprefix("torch_ltc.") for name in added if "torch_ltc." in name}
    from torch_ltc import _torch_patches

    patches = {*_torch_patches.AT_IMPORT, "import_hooks", "naming"}
    allowed_ours = AT_IMPORT | {f"_torch_patches.{name}" for name in patches}
    assert ours <= allowed_ours, ours - allowed_ours
    others = [name for name in added if name.partition(".")[0] != "torch_ltc"]
    assert others == ["torch.lazy"], "modules that torch itself doesn't import"


def test_pages_that_registering_has_read_are_released() -> None:
    program = """
        import torch
        size = resident = 0
        ours = False
        for line in open("/proc/self/smaps"):
            key, *values = line.split()
            if "-" in key:
                is_read_only = values[0].startswith("r") and "w" not in values[0]
                ours = is_read_only and line.rstrip().endswith("libtorch_ltc_backend.so")
            elif ours and key == "Size:":
                size += int(values[0])
            elif ours and key == "Rss:":
                resident += int(values[0])
        print(resident / size)
    """
    # The ratio is 0.9 if the pages aren't released.
    assert 0 < float(run_python(program).stdout) < 0.5


def test_lazy_names_are_there() -> None:
    import torch_ltc

    assert set(torch_ltc.__all__) <= set(dir(torch_ltc))
    for name in torch_ltc.__all__:
        assert getattr(torch_ltc, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        torch_ltc.nonsense  # noqa: B018


def test_torch_lazy_needs_no_import() -> None:
    """torch's own test functions use torch._lazy without importing it (2.13)."""
    run_python(
        """
        import sys, torch
        assert "torch._lazy" not in sys.modules
        from torch.testing._utils import wrapper_set_seed
        x = torch.ones(2, 3, device="lazy")
        wrapper_set_seed(torch.nn.functional.dropout, x)
        """
    )


def test_other_torch_version_is_one_sentence() -> None:
    assert torch_version_problem(REQUIRED_TORCH) == ""
    assert torch_version_problem(REQUIRED_TORCH + "+cpu") == ""
    sentence = torch_version_problem("2.12.1+cpu")
    assert "2.12.1+cpu" in sentence
    assert f"pip install torch=={REQUIRED_TORCH}" in sentence
    assert "\n" not in sentence


def test_other_torch_version_does_not_break_torch() -> None:
    # The check happens inside `import torch`, so the version is changed before.
    program = """
        import sys, types
        version = types.ModuleType("torch_ltc.version")
        version.VERSION, version.REQUIRED_TORCH = "0.1.0", "9.9.9"
        sys.modules["torch_ltc.version"] = version
        import torch
        print(torch.ones(2).sum().item())
    """
    result = run_python(program)
    assert result.stdout.strip() == "2.0"
    (line,) = result.stderr.strip().splitlines()
    assert "only works with torch 9.9.9" in line


@pytest.mark.parametrize(
    "error",
    [
        "ImportError('libMLIR.so.22.1: cannot open shared object file')",
        "ModuleNotFoundError('No module', name='torch_ltc._C')",
        "RuntimeError('anything')",
    ],
)
def test_broken_bindings_do_not_break_torch(error: str) -> None:
    result = run_python(WITHOUT_BINDINGS.format(error=error))
    assert result.stdout.strip() == "sum 3.0 False"
    assert "device 'lazy'" in result.stderr or "could not be" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_entry_point_is_installed() -> None:
    points = importlib.metadata.entry_points(group="torch.backends")
    assert "torch_ltc._autoload:register" in [point.value for point in points]


def test_the_torchscript_backend_does_not_take_over() -> None:
    program = """
        import torch, torch._lazy.ts_backend
        torch._lazy.ts_backend.init()
        import torch_ltc
        print(torch.ones(2, device="lazy").sum().item(), torch_ltc.metrics()["executions"])
    """
    assert run_python(program).stdout.split() == ["2.0", "1"]


def test_first_calls_import_no_compiler_of_torch() -> None:
    """Ops don't import torch._dynamo, although the first call of a meta kernel in Python
    does so in torch 2.13. The import takes a second, and scripts without an optimizer
    don't need it."""
    program = """
        import sys, torch
        from torch import nn
        x = torch.randn(50, 8).to("lazy")
        torch.cdist(x, x[:10])
        torch.cdist(x.expand(2, 50, 8), x[:30].expand(2, 30, 8))
        for draw in ("cauchy_", "exponential_", "log_normal_", "normal_", "uniform_"):
            getattr(torch.empty(4, device="lazy"), draw)()
        nn.init.normal_(nn.Linear(8, 8).to("lazy").weight)
        torch.empty(4, device="lazy").geometric_(0.5)
        torch.nextafter(x, x + 1)
        torch.multinomial(x.softmax(1), 1)
        nn.functional.gumbel_softmax(x)
        nn.functional.interpolate(x[None, None], scale_factor=2.0)
        x.median(0), torch.nanmedian(x), torch.topk(x, 3), x.quantile(0.5)
        print(x.sum().item())
        assert "torch._dynamo" not in sys.modules
    """
    run_python(program)
