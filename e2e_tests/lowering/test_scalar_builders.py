"""Each scalar builder gets the arguments of its rows by name (`ScalarBuilders.inc`)."""

from __future__ import annotations

from pathlib import Path

import op_table  # puts the folder of the op table into the search path
import pytest
import write_cpp
from op_schema import TableError, load_family

ROWS = """
default = { shape = "broadcast", dtype = "promote" }
ops = [
  { schema = "aten::foo(Tensor self, Scalar negative_slope) -> Tensor", lower = "foo" },
  { schema = "aten::foo.more(Tensor self, Scalar SLOPE, bool more) -> Tensor", lower = "foo" },
]
"""


def builders(folder: Path, slope: str) -> str:
    table = folder / "elementwise.toml"
    table.write_text(ROWS.replace("SLOPE", slope))
    return write_cpp.scalar_builders(load_family(table, "elementwise"))


def test_rows_may_have_further_arguments(tmp_path: Path) -> None:
    text = builders(tmp_path, "negative_slope")
    assert "Argument self, negativeSlope;" in text
    assert text.count("Value emitFoo(ElementwiseBody &s, FooArguments args);") == 1


def test_rows_with_other_names_need_another_builder(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"aten::foo\.more.*self, negative_slope"):
        builders(tmp_path, "slope")


def test_all_builders_have_one_declaration() -> None:
    text = write_cpp.scalar_builders(op_table.rows())
    names = {row.lower for row in write_cpp.elementwise_rows(op_table.rows())}
    assert text.count("struct ") == len(names)
