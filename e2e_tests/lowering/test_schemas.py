"""The op table matches the installed torch, and every op in it is traced, so no row is
unused."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import torch

TABLE = Path(__file__).resolve().parents[2] / "mlir_lowering" / "op_table"


def _rows():
    return [
        pytest.param(row, id=row["schema"].split("(")[0])
        for path in sorted(TABLE.glob("*.toml"))
        for row in tomllib.loads(path.read_text())["ops"]
    ]


@pytest.mark.parametrize("row", _rows())
def test_schema_is_torchs(row: dict) -> None:
    schema = torch._C.parse_schema(row["schema"])
    if row.get("trace") == "dialect":
        return
    installed = torch._C._get_schema(schema.name, schema.overload_name)
    assert str(schema) == str(installed)


@pytest.mark.parametrize("row", _rows())
def test_traced_ops_have_a_lazy_kernel(row: dict) -> None:
    if row.get("trace") == "dialect":
        return
    name = row["schema"].split("(")[0]
    torch.empty(0, device="lazy")  # all kernels are registered from now on
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    # A composite op without a CPU kernel is traced at autograd's dispatch key.
    composed = has_kernel(name, "CompositeImplicitAutograd")
    composed = composed and not has_kernel(name, "CPU")
    assert has_kernel(name, "AutogradLazy" if composed else "Lazy"), name
