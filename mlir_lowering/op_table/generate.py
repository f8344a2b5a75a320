#!/usr/bin/env python3
"""Generates the files that the build needs from the op table (*.toml in this folder).

    generate.py --output DIR           write the files
    generate.py --output DIR --list    print the files' paths, one a line

Written for each chunk of at most 40 ops, so that no translation unit takes minutes:
TorchOps_<chunk>.td (ODS) and TorchOps_<chunk>.cpp (definitions and registration).
Written once: TorchOps_<family>.h, TorchOpChunks.inc, TorchMlirMissingOps.inc,
ListResultOps.inc, LoweredOps.inc, HostOps.inc, VaryingLists.inc, ElementwiseOps.inc,
OpRecords.inc.
"""

import argparse
import dataclasses
import pathlib
import sys

import op_schema
import write_cpp
import write_ods

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
    "distributed",
)
OPS_PER_CHUNK = 40


@dataclasses.dataclass
class Chunk:
    """Ops of one family that share a translation unit."""

    name: str
    family: str
    rows: list


def load_rows(folder):
    rows = []
    for family in FAMILIES:
        rows += op_schema.load_family(folder / f"{family}.toml", family)
    op_schema.check_rows(rows)
    return rows


def make_chunks(rows):
    """Chunks of the distinct dialect ops; rows may share one (aten.view)."""
    chunks = []
    for family in FAMILIES:
        distinct = {}
        for row in rows:
            # Random numbers are parameters of the program, never ops in it.
            if row.family == family and row.trace != "random":
                distinct.setdefault(row.emit, row)
        ops = list(distinct.values())
        for begin in range(0, len(ops), OPS_PER_CHUNK):
            name = f"{family}_{begin // OPS_PER_CHUNK}"
            chunks.append(Chunk(name, family, ops[begin : begin + OPS_PER_CHUNK]))
    return chunks


def output_texts(rows):
    """File name -> text of every generated file."""
    chunks = make_chunks(rows)
    texts = {}
    for chunk in chunks:
        texts[f"TorchOps_{chunk.name}.td"] = write_ods.chunk_ods(chunk)
        texts[f"TorchOps_{chunk.name}.cpp"] = write_cpp.chunk_source(chunk)
    for family in FAMILIES:
        names = [c.name for c in chunks if c.family == family]
        texts[f"TorchOps_{family}.h"] = write_cpp.family_header(family, names)
    texts["TorchOpChunks.inc"] = write_cpp.chunk_list(chunks)
    texts["TorchMlirMissingOps.inc"] = write_cpp.missing_ops(rows)
    texts["LoweredOps.inc"] = write_cpp.lowered_ops(rows)
    texts["HostOps.inc"] = write_cpp.host_ops(rows)
    texts["VaryingLists.inc"] = write_cpp.varying_lists(rows)
    texts["ListResultOps.inc"] = write_cpp.list_result_ops(rows)
    texts["ElementwiseOps.inc"] = write_cpp.elementwise_table(rows)
    texts["OpRecords.inc"] = write_cpp.op_records(rows)
    return texts


def write_if_changed(path, text):
    """An unchanged file keeps its modification time, so that nothing is rebuilt."""
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    try:
        texts = output_texts(load_rows(pathlib.Path(__file__).parent))
    except op_schema.TableError as error:
        sys.exit(f"op table: {error}")
    for name, text in texts.items():
        if arguments.list:
            print(arguments.output / name)
        else:
            write_if_changed(arguments.output / name, text)


if __name__ == "__main__":
    main()
