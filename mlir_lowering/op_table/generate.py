#!/usr/bin/env python3
"""Generates the files that the build needs from the op table (*.toml in this folder).

    generate.py --output DIR

These are TorchOps_<family>.h (classes), AtenOps.inc (registration),
TorchMlirMissingOps.inc, ListResultOps.inc, LoweredOps.inc, HostOps.inc,
VaryingLists.inc, ElementwiseOps.inc, ScalarBuilders.inc, OpRules.inc, OpRecords.inc.
"""

import argparse
import pathlib
import sys

import op_schema
import write_classes
import write_cpp

FAMILIES = (
    "elementwise",
    "reduction",
    "data_movement",
    "linear",
    "convolution",
    "pooling",
    "normalization",
    "recurrence",
    "indexing",
    "embedding",
    "loss",
    "random",
    "constructor",
    "complex",
    "distributed",
)


def load_rows(folder):
    rows = []
    for family in FAMILIES:
        rows += op_schema.load_family(folder / f"{family}.toml", family)
    op_schema.check_rows(rows)
    return rows


def ops_of_families(rows):
    """Returns, by family, one row for each dialect op; rows may share an op (aten.view)."""
    families = {}
    for family in FAMILIES:
        distinct = {}
        for row in rows:
            # Random tensors are parameters of a program, which has no random ops.
            if row.family == family and row.trace != "random":
                distinct.setdefault(row.emit, row)
        families[family] = list(distinct.values())
    return families


def output_texts(rows):
    """Returns the text of each generated file by its name."""
    texts = {}
    families = ops_of_families(rows)
    scalars = write_cpp.scalars_of_ops(rows)
    for family, ops in families.items():
        header = write_classes.family_header(family, ops, scalars)
        texts[f"TorchOps_{family}.h"] = header
    texts["AtenOps.inc"] = write_classes.op_list(families)
    texts["TorchMlirMissingOps.inc"] = write_cpp.missing_ops(rows)
    texts["LoweredOps.inc"] = write_cpp.lowered_ops(rows)
    texts["HostOps.inc"] = write_cpp.host_ops(rows)
    texts["VaryingLists.inc"] = write_cpp.varying_lists(rows)
    texts["ListResultOps.inc"] = write_cpp.list_result_ops(rows)
    texts["ElementwiseOps.inc"] = write_cpp.elementwise_table(rows)
    texts["ScalarBuilders.inc"] = write_cpp.scalar_builders(rows)
    texts["OpRules.inc"] = write_cpp.op_rules(rows)
    texts["OpRecords.inc"] = write_cpp.op_records(rows)
    return texts


def write_if_changed(path, text):
    """Writes the file only if its text changes, to avoid rebuilds."""
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    try:
        texts = output_texts(load_rows(pathlib.Path(__file__).parent))
    except op_schema.TableError as error:
        sys.exit(f"op table: {error}")
    for name, text in texts.items():
        write_if_changed(arguments.output / name, text)


if __name__ == "__main__":
    main()
