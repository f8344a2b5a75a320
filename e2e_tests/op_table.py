"""The rows of the op table (`mlir_lowering/op_table`), as the build reads them."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

TABLE = Path(__file__).resolve().parents[1] / "mlir_lowering" / "op_table"
sys.path.insert(0, str(TABLE))
from op_schema import NUMBER_TYPES, Row, load_family

__all__ = ["NUMBER_TYPES", "Row", "name_of", "rows"]


@functools.cache
def rows() -> tuple[Row, ...]:
    """Returns all rows, with the families in alphabetical order."""
    paths = sorted(TABLE.glob("*.toml"))
    return tuple(row for path in paths for row in load_family(path, path.stem))


def name_of(row: Row) -> str:
    """Returns the op's name with its namespace: "aten::add.Tensor"."""
    return row.schema.partition("(")[0]
