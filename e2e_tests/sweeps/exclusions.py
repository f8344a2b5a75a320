"""OpInfo entries that can't be compared with eager."""

from __future__ import annotations

#: Entry -> why eager has no unique result.
EXCLUDED: dict[str, str] = {
    "empty": "uninitialized memory",
    "empty_like": "uninitialized memory",
    "empty_permuted": "uninitialized memory",
    "empty_strided": "uninitialized memory",
    "new_empty": "uninitialized memory",
    "new_empty_strided": "uninitialized memory",
}


def is_excluded(entry: str) -> bool:
    return entry in EXCLUDED
