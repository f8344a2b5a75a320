"""Every row of the op table with `lower = "decompose"` has a decomposition."""

import re
import sys

from decompositions.comparison import DECOMPOSED
from decompositions.torch_stage import ROOT

sys.path.insert(0, str(ROOT / "mlir_lowering" / "op_table"))
import op_schema


def test_rows_have_decompositions():
    sources = (ROOT / "mlir_lowering" / "lib" / "Transforms").glob("Decompose*.cpp")
    text = "\n".join(path.read_text() for path in sources)
    classes = set(re.findall(r"\b((?:Aten|TorchLtc)\w+Op)\b", text))
    rows = {}
    for path in (ROOT / "mlir_lowering" / "op_table").glob("*.toml"):
        for row in op_schema.load_family(path, path.stem):
            rows[row.emit] = row.class_name
    missing = sorted(name for name in DECOMPOSED if rows[name] not in classes)
    assert not missing
