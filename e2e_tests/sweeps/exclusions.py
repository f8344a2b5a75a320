"""OpInfo entries that can't be compared, and failures that are known."""

from __future__ import annotations

#: Entry -> why eager has no one answer.
EXCLUDED: dict[str, str] = {
    "empty": "uninitialised memory",
    "empty_like": "uninitialised memory",
    "empty_permuted": "uninitialised memory",
    "empty_strided": "uninitialised memory",
    "new_empty": "uninitialised memory",
    "new_empty_strided": "uninitialised memory",
}

_ACCUMULATION = (
    "bfloat16: PyTorch's Python adds in float32 on device types that it names"
)

#: Entry -> why a sample fails or differs. Remove the line with the defect.
KNOWN_FAILURES: dict[str, str] = {
    "nn.functional.linear_cross_entropy.chunked": _ACCUMULATION,
    "nn.functional.linear_cross_entropy.chunked_none": _ACCUMULATION,
}


def is_excluded(entry: str) -> bool:
    return entry in EXCLUDED
