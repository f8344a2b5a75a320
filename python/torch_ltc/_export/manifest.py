"""Writes manifests of exported programs as protobuf and JSON, and reads them.

manifest.proto defines the messages. This module builds them from a descriptor, because
code that protoc generates only works with one version of protobuf.
"""

from __future__ import annotations

import json
import math
import os
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    json_format,
    message_factory,
)

MESSAGES: dict[str, list[tuple[str, str]]] = {
    "Manifest": [
        ("version", "int32"),
        ("dialect", "string"),
        ("entry", "string"),
        ("inputs", "repeated Tensor"),
        ("scalars", "repeated Scalar"),
        ("outputs", "repeated Tensor"),
        ("hyperparameters", "repeated Hyperparameter"),
        ("symbols", "repeated Symbol"),
    ],
    "Tensor": [
        ("name", "string"),
        ("role", "string"),
        ("shape", "repeated int64"),
        ("dtype", "string"),
        ("updates", "int32"),
        ("also", "repeated string"),
        ("distribution", "string"),
        ("sizes", "repeated string"),
    ],
    "Scalar": [
        ("kind", "string"),
        ("value", "double"),
        ("type", "string"),
        ("role", "string"),
        ("formula", "string"),
    ],
    "Hyperparameter": [("name", "string"), ("value", "double")],
    "Symbol": [("name", "string"), ("min", "int64"), ("max", "int64")],
}


@cache
def _message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="torch_ltc/manifest.proto", package="torch_ltc", syntax="proto3"
    )
    kinds = descriptor_pb2.FieldDescriptorProto
    for message_name, fields in MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for number, (name, text) in enumerate(fields, start=1):
            kind = text.removeprefix("repeated ")
            field = message.field.add(name=name, number=number)
            field.label = kinds.LABEL_REPEATED if kind != text else kinds.LABEL_OPTIONAL
            if kind in MESSAGES:
                field.type = kinds.TYPE_MESSAGE
                field.type_name = f".torch_ltc.{kind}"
            else:
                field.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName("torch_ltc.Manifest")
    )


def manifest_bytes(manifest: dict[str, Any]) -> bytes:
    """Serializes the manifest as a `torch_ltc.Manifest`."""
    message = json_format.ParseDict(for_json(manifest), _message_class()())
    return message.SerializeToString()


def for_json(manifest: dict[str, Any]) -> dict[str, Any]:
    """Replaces infinities and NaN, which JSON lacks, by the strings of protobuf's JSON
    ("Infinity", "-Infinity", "NaN"), which `float` accepts."""

    def row(scalar: dict[str, Any]) -> dict[str, Any]:
        value = scalar["value"]
        if math.isfinite(value):
            return scalar
        text = "NaN" if math.isnan(value) else "Infinity"
        return {**scalar, "value": f"-{text}" if value < 0 else text}

    return {**manifest, "scalars": [row(scalar) for scalar in manifest["scalars"]]}


def manifest_from_bytes(data: bytes) -> dict[str, Any]:
    """Reverses `manifest_bytes`; the result includes fields with default values."""
    message = _message_class()()
    message.ParseFromString(data)
    result = json_format.MessageToDict(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )
    for scalar in result["scalars"]:
        scalar["value"] = float(scalar["value"])  # such as "-Infinity"
    for tensor in result["inputs"] + result["outputs"]:
        # Protobuf's JSON represents 64-bit integers as strings.
        tensor["shape"] = [int(size) for size in tensor["shape"]]
    for symbol in result["symbols"]:
        symbol["min"], symbol["max"] = int(symbol["min"]), int(symbol["max"])
    return result


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads manifest.json of an exported program. Raises ValueError if the file is missing
    or damaged, or has a different version."""
    from torch_ltc._export.export import MANIFEST_VERSION

    path = Path(folder) / "manifest.json"
    try:
        manifest = json.loads(path.read_text())
    except OSError:
        raise ValueError(f"'{folder}' has no manifest.json.") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"'{path}' isn't JSON: {error}.") from None
    version = manifest.get("version") if isinstance(manifest, dict) else None
    if version != MANIFEST_VERSION:
        raise ValueError(
            f"'{path}' has version {version}, but this torch_ltc reads version "
            f"{MANIFEST_VERSION}; export the program again."
        )
    for scalar in manifest["scalars"]:
        if isinstance(scalar["value"], str):
            scalar["value"] = float(scalar["value"])
    return manifest
