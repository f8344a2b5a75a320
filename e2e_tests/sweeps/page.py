"""Writes `docs/ops.md` from the op table and the last sweep, with the template `ops.md` in
this folder.

    python -m sweeps.page float32=float32.json bfloat16=bfloat16.json ...

Given files, merges new results of `python -m sweeps` into `results.json` first; without
arguments, only writes the page. Run the command in `e2e_tests/`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import jinja2
import op_table

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "ops.md"

#: Entries that eager itself computes with libraries, or whose result sizes depend on
#: values: they are meant to fall back.
IRREGULAR_BEGINNINGS = ("fft.", "linalg.", "sparse.", "special.", "polygamma")
IRREGULAR = frozenset(
    [
        "_segment_reduce.lengths",
        "_segment_reduce.offsets",
        "allclose",
        "argwhere",
        "cdouble",
        "cfloat",
        "chalf",
        "cholesky",
        "cholesky_inverse",
        "cholesky_solve",
        "complex",
        "equal",
        "geqrf",
        "hash_tensor",
        "histogram",
        "histogramdd",
        "igamma",
        "igammac",
        "istft",
        "linspace.tensor_overload",
        "logdet",
        "logspace.tensor_overload",
        "lu",
        "lu_solve",
        "lu_unpack",
        "matrix_exp",
        "multinomial",
        "nonzero_static",
        "norm.nuc",
        "ormqr",
        "pca_lowrank",
        "pinverse",
        "polar",
        "qr",
        "resize_as_",
        "stft",
        "svd",
        "svd_lowrank",
        "to_sparse",
        "triangular_solve",
        "unique",
        "unique_consecutive",
        "view_as_complex",
    ]
)

KINDS = {
    "linalg": "lowered",
    "library": "library call",
    "host": "PyTorch's kernel, in the program",
    "decompose": "decomposed",
    "none": "random numbers",
}
SIGNS = {"agrees": "yes", "fallback": "fallback", "wrong": "differs", "error": "fails"}


def is_regular(entry: str) -> bool:
    return entry not in IRREGULAR and not entry.startswith(IRREGULAR_BEGINNINGS)


def take(arguments: list[str]) -> dict:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for argument in arguments:
        dtype, _, path = argument.partition("=")
        for entry, parts in json.loads(Path(path).read_text()).items():
            row = results.setdefault(entry, {})
            row[dtype] = {
                p: o["status"] for p, o in parts.items() if o["status"] != "none"
            }
            if dtype == "float32":
                ops = {f for o in parts.values() for f in o["fallbacks"]}
                row["fallbacks"] = sorted(op.removeprefix("aten::") for op in ops)
    if arguments:
        lines = [
            f" {json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(results.items())
        ]
        RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return results


def native_share(results: dict) -> tuple[int, int]:
    """Returns the number of regular float32 entries whose parts all agree without a
    fallback, and the number of all regular entries."""
    rows = [
        set(row["float32"].values())
        for entry, row in results.items()
        if is_regular(entry) and row.get("float32")
    ]
    return sum(statuses == {"agrees"} for statuses in rows), len(rows)


def _table_rows() -> Iterator[tuple[str, str, str, str]]:
    """Yields family, op, how it is computed and what determines its result's sizes."""
    for row in op_table.rows():
        if row.trace == "dialect":
            continue
        how = KINDS.get(row.lower, "elementwise")
        sizes = "Meta kernel" if row.shape == "meta" else "closed form"
        yield row.family, op_table.name_of(row).removeprefix("aten::"), how, sizes


#: The parts of a float32 entry with the titles of their columns.
PARTS = {
    "function": "float32",
    "inplace": "in place",
    "out": "out=",
    "gradient": "gradient",
}
OTHER_DTYPES = ("float64", "bfloat16", "int64", "bool")


def _entry_rows(results: dict) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields entry, signs in the order of the columns and the ops that run eagerly."""
    for entry, row in sorted(results.items()):
        statuses = [row.get("float32", {}).get(part, "") for part in PARTS]
        statuses += [row.get(d, {}).get("function", "") for d in OTHER_DTYPES]
        yield entry, [SIGNS.get(s, "") for s in statuses], row.get("fallbacks", [])


def page(results: dict) -> str:
    native, regular = native_share(results)
    counts = Counter(
        status
        for row in results.values()
        for status in [worst(row.get("float32", {}))]
        if status
    )
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(PAGE.name).render(
        native=native,
        regular=regular,
        summary=", ".join(f"{counts[k]} {SIGNS[k]}" for k in SIGNS if counts[k]),
        columns=["entry", *PARTS.values(), *OTHER_DTYPES, "runs eagerly"],
        entries=_entry_rows(results),
        table=_table_rows(),
    )


def worst(parts: dict[str, str]) -> str:
    for status in ("wrong", "error", "fallback", "agrees"):
        if status in parts.values():
            return status
    return ""


def main() -> None:
    PAGE.write_text(page(take(sys.argv[1:])))


if __name__ == "__main__":
    main()
