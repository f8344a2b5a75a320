"""The op table matches the installed torch, and every op in it is traced, so no row is
unused."""

from __future__ import annotations

import op_table
import pytest
import torch


@pytest.mark.parametrize("row", op_table.rows(), ids=op_table.name_of)
def test_schema_is_torchs(row: op_table.Row) -> None:
    schema = torch._C.parse_schema(row.schema)
    if row.trace == "dialect":
        return
    installed = torch._C._get_schema(schema.name, schema.overload_name)
    assert str(schema) == str(installed)


@pytest.mark.parametrize("row", op_table.rows(), ids=op_table.name_of)
def test_traced_ops_have_a_lazy_kernel(row: op_table.Row) -> None:
    if row.trace == "dialect":
        return
    name = op_table.name_of(row)
    torch.empty(0, device="lazy")  # all kernels are registered from now on
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    # A composite op without a CPU kernel is traced at autograd's dispatch key.
    composed = has_kernel(name, "CompositeImplicitAutograd")
    composed = composed and not has_kernel(name, "CPU")
    assert has_kernel(name, "AutogradLazy" if composed else "Lazy"), name
