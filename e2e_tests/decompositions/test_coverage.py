"""Every row of the op table with `lower = "decompose"` has a decomposition."""

import re

import op_table
from decompositions.comparison import DECOMPOSED
from decompositions.torch_stage import ROOT


def test_rows_have_decompositions():
    sources = (ROOT / "mlir_lowering" / "lib" / "Transforms").glob("Decompose*.cpp")
    text = "\n".join(path.read_text() for path in sources)
    classes = set(re.findall(r"\b((?:Aten|TorchLtc)\w+Op)\b", text))
    rows = {row.emit: row.class_name for row in op_table.rows()}
    missing = sorted(name for name in DECOMPOSED if rows[name] not in classes)
    assert not missing
